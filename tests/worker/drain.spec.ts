import { setImmediate as nextRound } from 'node:timers/promises'
import { test } from '@japa/runner'
import { FatalError } from '../../src/errors.ts'
import type { StepContext } from '../../src/types/step.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { Cluster, THREE } from './cluster.ts'
import { endOf, factsOf } from './run_facts.ts'
import { Gate } from '../support/gate.ts'
import { until } from '../support/until.ts'

const LEASE_MS = 300
const OPTIONS = { leaseMs: LEASE_MS, pollMs: 20, idlePollMs: 50 }
/** One that outlasts a pause of this process between two of its renewals. */
const PATIENT_LEASE_MS = 1_500
/** Longer than any test. */
const EVER = 60_000

onEach(KINDS, (kind) =>
  test.group(`A worker that shuts down (${kind})`, (group) => {
    let cluster: Cluster
    group.each.setup(async () => {
      cluster = await Cluster.on(kind)
      return () => cluster.close()
    })

    test('lets a step in flight finish and records it, starts no further one, and hands the run back uncounted (DL-10, case 6)', async ({
      assert,
    }) => {
      const { app, engine, gates } = await cluster.application({ ...OPTIONS, drainMs: EVER })
      const worker = await app.work()
      await engine.start(THREE, null, 'r')
      await gates[0].reached()
      const stopped = worker.stop()
      gates[0].open()
      await stopped
      const run = await factsOf(engine, 'r')
      assert.equal(run.status, 'suspended')
      assert.equal(run.recoveryAttempts, 0)
      assert.deepEqual(run.records, ['step-0'])
      assert.equal(gates[1].arrived, 0)
      assert.deepEqual(await engine.listWorkers(), [])
      assert.deepEqual(await engine.findStranded(), [])

      const next = await cluster.application(OPTIONS)
      next.openAll()
      await next.app.work()
      const end = await endOf(next.engine, 'r')
      assert.equal(end.status, 'completed')
      assert.equal(end.recoveryAttempts, 0)
      assert.equal(next.gates[0].arrived, 0)
    })

    test('aborts the signal of a step that outlasts drainMs, and the run executes it again elsewhere, uncounted (DL-10, case 6)', async ({
      assert,
    }) => {
      const { app, engine, gates } = await cluster.application({ ...OPTIONS, drainMs: 50 })
      const worker = await app.work()
      await engine.start(THREE, null, 'r')
      gates[0].open()
      await gates[1].reached()
      await worker.stop()
      const run = await factsOf(engine, 'r')
      assert.equal(run.status, 'suspended')
      assert.lengthOf(run.records, 1)

      const next = await cluster.application(OPTIONS)
      next.openAll()
      await next.app.work()
      const end = await endOf(next.engine, 'r')
      assert.equal(end.status, 'completed')
      assert.equal(end.recoveryAttempts, 0)
      assert.deepEqual(
        next.gates.map((gate) => gate.arrived),
        [0, 1, 1]
      )
      assert.lengthOf(end.records, 3)
    })

    /** The first of two workers stops while its step, or compensation, is at work that goes on after its abort. */
    async function stoppedAtWork(part: 'step' | 'compensation') {
      const [first, other] = [
        await cluster.application({ ...OPTIONS, drainMs: 20 }),
        await cluster.application(OPTIONS),
      ]
      const [begun, leaving] = [new Gate(), new Gate()]
      const calls: string[] = []
      for (const [name, { engine }] of Object.entries({ first, other })) {
        const work = async ({ signal }: StepContext) => {
          calls.push(name)
          if (name === 'other') return name
          await begun.pass(signal).catch(() => {})
          await leaving.pass()
          return name
        }
        engine.register('main', '1', async (ctx) => {
          if (part === 'step') return ctx.localStep('slow', work)
          await ctx.localStep('done', () => 1, { compensate: (_, step) => work(step) })
          throw new FatalError('No', 'no')
        })
      }
      const worker = await first.app.work()
      await first.engine.start({ name: 'main', version: '1' }, null, 'r')
      await begun.reached()
      await other.app.work()
      const stopped = worker.stop()
      await leaving.reached()
      await other.connection.called('claim', 2)
      const during = [...calls]
      leaving.open()
      await stopped
      const end = await endOf(other.engine, 'r')
      return { during, calls, end }
    }

    for (const [part, status] of [
      ['step', 'completed'],
      ['compensation', 'failed'],
    ] as const)
      test(`keeps the run of a ${part} that has not returned from its abort, and records what it comes to (DL-10, case 6)`, async ({
        assert,
      }) => {
        const { during, calls, end } = await stoppedAtWork(part)
        assert.deepEqual([during, calls], [['first'], ['first']])
        assert.deepEqual([end.status, end.recoveryAttempts], [status, 0])
        if (part === 'step') assert.equal(end.output, 'first')
      })

    test('hands a run back as soon as the attempt of a step fails that another one would follow', async ({
      assert,
    }) => {
      const { app, engine } = await cluster.application({ ...OPTIONS, drainMs: EVER })
      const gate = new Gate()
      engine.register('main', '1', (ctx) =>
        ctx.localStep(
          'fails',
          async () => {
            await gate.pass()
            throw new Error('No')
          },
          { backoffMs: 100 }
        )
      )
      const worker = await app.work()
      await engine.start({ name: 'main', version: '1' }, null, 'r')
      await gate.reached()
      const stopped = worker.stop()
      await nextRound()
      gate.open()
      await stopped
      const run = await factsOf(engine, 'r')
      assert.deepEqual([run.status, run.recoveryAttempts], ['suspended', 0])
      assert.equal(gate.arrived, 1)
    })

    test('keeps its lease until the drain has ended, so that nobody takes its runs over (case 5)', async ({
      assert,
    }) => {
      const options = { ...OPTIONS, leaseMs: PATIENT_LEASE_MS }
      const draining = await cluster.application({ ...options, drainMs: EVER })
      const other = await cluster.application(options)
      const worker = await draining.app.work()
      await draining.engine.start(THREE, null, 'r')
      await draining.gates[0].reached()
      const otherWorker = await other.app.work()
      const stopped = worker.stop()
      // Longer than the lease was when it began to drain.
      await draining.connection.called('renewWorker', 5)
      await other.connection.called('recoverExpired', 2)
      assert.equal(other.gates[0].arrived, 0)
      await otherWorker.stop()
      draining.gates[0].open()
      await stopped
      const run = await factsOf(draining.engine, 'r')
      assert.equal(run.recoveryAttempts, 0)
      assert.lengthOf(run.records, 1)
    })

    test('claims nothing any more, neither what becomes due nor what it has handed back (case 2)', async ({
      assert,
    }) => {
      const { app, engine, gates, connection } = await cluster.application({
        ...OPTIONS,
        drainMs: EVER,
      })
      const starter = await cluster.application(OPTIONS)
      const worker = await app.work({ concurrency: 10 })
      await engine.start(THREE, null, 'r')
      await gates[0].reached()
      const stopped = worker.stop()
      const claims = connection.calls('claim')
      await engine.start(THREE, null, 'own')
      await starter.engine.start(THREE, null, 'foreign')
      await connection.called('renewWorker', 3)
      gates[0].open()
      await stopped
      assert.equal(connection.calls('claim'), claims)
      for (const [id, status] of [
        ['own', 'pending'],
        ['foreign', 'pending'],
        ['r', 'suspended'],
      ] as const) {
        const run = await factsOf(engine, id)
        assert.equal(run.status, status, id)
      }
    })

    test('hands back, uncounted, what it has claimed and could not load (DL-10, P4)', async ({
      assert,
    }) => {
      const { app, engine, connection } = await cluster.application(OPTIONS)
      const starter = await cluster.application(OPTIONS)
      connection.lose(new Error('The database is away'), ['load'])
      const worker = await app.work()
      const loading = connection.called('load')
      await starter.engine.start(THREE, null, 'r')
      await loading
      await worker.stop()
      const run = await factsOf(engine, 'r')
      assert.equal(run.status, 'suspended')
      assert.equal(run.recoveryAttempts, 0)
      assert.deepEqual(await engine.findStranded(), [])
    })

    test('hands back runs of every kind at once: a step in flight, a retry, a child, a sleep and a signal, none of them counted and none stranded (DL-10, P4)', async ({
      assert,
    }) => {
      const register = ({ engine }: Awaited<ReturnType<typeof cluster.application>>) => {
        let attempts = 0
        const child = engine.register('child', '1', (ctx) => ctx.waitForSignal('go'))
        engine.register('parent', '1', (ctx) => ctx.child(child, null))
        engine.register('sleep', '1', (ctx) => ctx.sleep(EVER))
        engine.register('retry', '1', (ctx) =>
          ctx.localStep(
            'fails',
            () => {
              attempts++
              throw new Error('No')
            },
            { backoffMs: 1_000, retries: 5 }
          )
        )
        return () => attempts
      }
      const first = await cluster.application({ ...OPTIONS, drainMs: 50 })
      const attempts = register(first)
      const worker = await first.app.work()
      for (const workflow of ['parent', 'sleep', 'retry', 'three'])
        await first.engine.start({ name: workflow, version: '1' }, null, workflow)
      await first.gates[0].reached()
      await until(() => attempts() > 0)
      await until(async () => {
        const { runs } = await first.engine.listRuns({ status: 'suspended' })
        return runs.length === 3
      })
      await worker.stop()
      const { runs } = await first.engine.listRuns()
      assert.lengthOf(runs, 5)
      for (const run of runs) {
        assert.equal(run.status, 'suspended', run.id)
        assert.equal(run.recoveryAttempts, 0, run.id)
        assert.isNull(run.owner, run.id)
      }
      assert.deepEqual(await first.engine.findStranded(), [])
    })
  })
)
