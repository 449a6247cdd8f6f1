import { test } from '@japa/runner'
import { claimKey, suspectKey } from '../../src/core/name.ts'
import { internalsOf, type WorkflowEngine } from '../../src/engine/engine.ts'
import { turn } from '../../src/testing/conformance/writes.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { firstStep } from '../support/stored_run.ts'
import { CAP, Stage } from '../support/stage.ts'

const PIPELINE = { name: 'pipeline', version: '1' }

onEach(KINDS, (kind) =>
  test.group(`Recovery and its cap (${kind})`, (group) => {
    let stage: Stage
    group.each.setup(async () => {
      stage = await Stage.on(kind)
      return () => stage.close()
    })

    /** A workflow of two steps that says how often each was executed. */
    function registerPipeline(engine: WorkflowEngine) {
      const executed = { first: 0, second: 0 }
      engine.register('pipeline', '1', async (ctx, input: { lines: number }) => {
        const first = await ctx.localStep('first', () => ++executed.first)
        const second = await ctx.localStep('second', () => ++executed.second)
        return input.lines + first + second
      })
      return executed
    }

    async function countOf(runId = 'r'): Promise<number | undefined> {
      const run = await stage.store.getRun(runId)
      return run?.recoveryAttempts
    }

    test('DL-2: recoverIncomplete makes one pass: the runs of expired leases are due, those of live ones are not', async ({
      assert,
    }) => {
      const { engine } = await stage.app()
      registerPipeline(engine)
      await engine.start(PIPELINE, { lines: 1 }, 'r')
      await stage.dying.take('pipeline')
      assert.deepEqual(await engine.recoverIncomplete(), { workers: 0, runs: 0 })
      await engine.advanceClock(1_001)
      assert.deepEqual(await engine.recoverIncomplete(), { workers: 1, runs: 1 })
      assert.deepEqual(await engine.recoverIncomplete(), { workers: 0, runs: 0 })
      const run = await engine.getRun('r')
      assert.equal(run?.status, 'running')
      assert.equal(run?.recoveryAttempts, 0)
      assert.isAtMost(run?.dueAt ?? Infinity, await stage.store.now())
      assert.deepEqual(await engine.findStranded(), [])
    })

    test('DL-2: a worker makes a pass at every tick, and takes up what was lost', async ({
      assert,
    }) => {
      const app = await stage.app({ leaseMs: 300 })
      registerPipeline(app.engine)
      await app.engine.start(PIPELINE, { lines: 1 }, 'r')
      await stage.dying.take('pipeline')
      const passes: unknown[] = []
      const { engine } = app
      const recoverIncomplete = engine.recoverIncomplete.bind(engine)
      const several = Promise.withResolvers<void>()
      engine.recoverIncomplete = async () => {
        passes.push(await recoverIncomplete())
        if (passes.length === 3) several.resolve()
        return { workers: 0, runs: 0 }
      }
      await app.work()
      await several.promise
      const run = await engine.waitForRun('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, 1)
    })

    test('DL-3: a run that ended after it was found lost is not picked up and not counted', async ({
      assert,
    }) => {
      const app = await stage.app()
      const executed = registerPipeline(app.engine)
      await app.engine.start(PIPELINE, { lines: 1 }, 'r')
      const [row] = await stage.dying.takeAndDie('pipeline')
      assert.isDefined(row)
      const end = { kind: 'complete' as const, output: '{"v":7}' }
      await stage.store.commit([turn(row!, { end })])
      const worker = await app.work()
      await worker.whenIdle()
      const run = await app.engine.getRun('r')
      assert.equal(run?.status, 'completed')
      assert.equal(run?.output, 7)
      assert.equal(run?.recoveryAttempts, 0)
      assert.deepEqual(executed, { first: 0, second: 0 })
    })

    test('DL-3: a run that suspended after it was found lost is woken later, uncounted', async ({
      assert,
    }) => {
      const app = await stage.app()
      const executed = registerPipeline(app.engine)
      await app.engine.start(PIPELINE, { lines: 1 }, 'r')
      const [row] = await stage.dying.takeAndDie('pipeline')
      const end = { kind: 'release' as const }
      await stage.store.commit([turn(row!, { records: [firstStep('first', '{"v":1}')], end })])
      await app.work()
      const run = await app.engine.waitForRun('r')
      assert.equal(run.recoveryAttempts, 0)
      assert.deepEqual(executed, { first: 0, second: 1 })
    })

    test('DL-4: the pickup itself stores the count, so that a process that dies before it resumes the body is counted', async ({
      assert,
    }) => {
      const { engine } = await stage.app()
      await engine.start({ name: 'pipeline', version: '1' }, { lines: 1 }, 'r')
      await stage.dying.takeAndDie('pipeline')
      assert.equal(await countOf(), 0)
      await stage.dying.take('pipeline')
      assert.equal(await countOf(), 1)
      await stage.dying.findLost()
      await stage.dying.take('pipeline')
      assert.equal(await countOf(), 2)
    })

    test('DL-6: pickups 1 to N resume the run, and it completes at the last of them', async ({
      assert,
    }) => {
      const app = await stage.app()
      const executed = registerPipeline(app.engine)
      await app.engine.start(PIPELINE, { lines: 1 }, 'r')
      for (let loss = 0; loss < CAP; loss++) await stage.dying.takeAndDie('pipeline')
      await app.work()
      const run = await app.engine.waitForRun('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, CAP)
      assert.deepEqual(executed, { first: 1, second: 1 })
    })

    test('DL-6: the pickup that would be N+1 ends it dead with max_recovery_attempts, without an owner, and nobody touches it again', async ({
      assert,
    }) => {
      const app = await stage.app()
      const executed = registerPipeline(app.engine)
      await app.engine.start(PIPELINE, { lines: 1 }, 'r')
      await stage.loseBeyondCap('pipeline')
      const worker = await app.work()
      const run = await app.engine.waitForRun('r')
      assert.equal(run.status, 'dead')
      assert.equal(run.error?.code, 'max_recovery_attempts')
      assert.equal(run.errorCode, 'max_recovery_attempts')
      assert.isNull(run.owner)
      assert.isNull(run.dueAt)
      await app.engine.advanceClock(3_600_000)
      await app.engine.recoverIncomplete()
      await worker.whenIdle()
      assert.deepEqual(await stage.dying.takeAndDie('pipeline'), [])
      assert.deepEqual(await app.engine.getRun('r'), run)
      assert.deepEqual(executed, { first: 0, second: 0 })
      assert.deepEqual(await app.engine.findStranded(), [])
    })

    test('DL-6: a run that was recovered more often than a cap that came later is not dead when it is woken', async ({
      assert,
    }) => {
      const before = await stage.app({ maxRecoveryAttempts: 9 })
      const wait = before.engine.register('wait', '1', (ctx) => ctx.waitForSignal('go'))
      await before.engine.start(wait, null, 'r')
      for (let loss = 0; loss < CAP + 2; loss++) await stage.dying.takeAndDie('wait')
      const worker = await before.work()
      await worker.whenIdle()
      await worker.stop()
      assert.equal(await countOf(), CAP + 2)

      const after = await stage.app()
      after.engine.register('wait', '1', (ctx) => ctx.waitForSignal('go'))
      await after.work()
      await after.engine.signal('go', 'on')
      const run = await after.engine.waitForRun('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.output, 'on')
    })

    test('DL-7: without a cap a run is recovered as often as it is lost', async ({ assert }) => {
      const app = await stage.app({ maxRecoveryAttempts: undefined })
      const executed = registerPipeline(app.engine)
      await app.engine.start(PIPELINE, { lines: 1 }, 'r')
      for (let loss = 0; loss < 20; loss++) await stage.dying.takeAndDie('pipeline')
      await app.work()
      const run = await app.engine.waitForRun('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, 20)
      assert.deepEqual(executed, { first: 1, second: 1 })
    })

    test('DL-8: a dead run keeps its input, what it had recorded and its error, and lists find it', async ({
      assert,
    }) => {
      const app = await stage.app()
      registerPipeline(app.engine)
      await app.engine.start(PIPELINE, { lines: 5 }, { runId: 'r', tags: ['import'] })
      const [row] = await stage.dying.take('pipeline')
      const records = [firstStep('first', '{"v":1}')]
      await stage.store.commit([turn(row!, { records })])
      await stage.dying.findLost()
      for (let loss = 0; loss < CAP; loss++) await stage.dying.takeAndDie('pipeline')
      await app.work()
      const run = await app.engine.waitForRun('r')
      assert.equal(run.status, 'dead')
      assert.deepEqual(run.input, { lines: 5 })
      assert.match(run.error?.message ?? '', new RegExp(`lost ${CAP + 1} times`))
      assert.deepEqual(run.tags, ['import'])
      const history = await app.engine.getHistory('r')
      assert.deepEqual(
        history?.records.map(({ name, output, generation }) => [name, output, generation]),
        [['first', 1, 0]]
      )
      const { runs } = await app.engine.listRuns({ status: 'dead' })
      assert.deepEqual(
        runs.map(({ id }) => id),
        ['r']
      )
    })

    test('DL-9: requeue gives a dead run its whole budget again and replays what was recorded', async ({
      assert,
    }) => {
      const app = await stage.app()
      const executed = registerPipeline(app.engine)
      await app.engine.start(PIPELINE, { lines: 1 }, 'r')
      const [row] = await stage.dying.take('pipeline')
      await stage.store.commit([turn(row!, { records: [firstStep('first', '{"v":40}')] })])
      await stage.dying.findLost()
      for (let loss = 0; loss < CAP; loss++) await stage.dying.takeAndDie('pipeline')
      const worker = await app.work()
      await app.engine.waitForRun('r')
      await worker.stop()

      assert.isTrue(await app.engine.requeue('r'))
      assert.equal(await countOf(), 0)
      for (let loss = 0; loss < CAP; loss++) await stage.dying.takeAndDie('pipeline')
      await app.work()
      const run = await app.engine.waitForRun('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, CAP)
      assert.equal(run.output, 42)
      assert.deepEqual(executed, { first: 0, second: 1 })
    })

    test('DL-9: a requeued run that is lost once too often again is dead again', async ({
      assert,
    }) => {
      const app = await stage.app()
      registerPipeline(app.engine)
      await app.engine.start(PIPELINE, { lines: 1 }, 'r')
      for (const life of [1, 2]) {
        await stage.loseBeyondCap('pipeline')
        const worker = await app.work()
        const run = await app.engine.waitForRun('r')
        assert.equal(run.status, 'dead', `life ${life}`)
        await worker.stop()
        if (life === 1) assert.isTrue(await app.engine.requeue('r'))
      }
    })

    test('DL-9: requeue of a live run keeps its count', async ({ assert }) => {
      const app = await stage.app()
      const wait = app.engine.register('wait', '1', (ctx) => ctx.sleep('1 hour'))
      await app.engine.start(wait, null, 'r')
      await stage.dying.takeAndDie('wait')
      const worker = await app.work()
      await worker.whenIdle()
      assert.isTrue(await app.engine.requeue('r'))
      await worker.whenIdle()
      const run = await app.engine.getRun('r')
      assert.equal(run?.status, 'suspended')
      assert.equal(run?.recoveryAttempts, 1)
    })

    test('DL-10: a worker that stops while it recovers hands the run back, and it is not dead', async ({
      assert,
    }) => {
      const app = await stage.app({ drainMs: 50 })
      const reached = Promise.withResolvers<void>()
      const ref = app.engine.register('poison', '1', (ctx) =>
        ctx.localStep('stuck', ({ signal }) => {
          reached.resolve()
          return new Promise((_, reject) => signal.addEventListener('abort', reject))
        })
      )
      await app.engine.start(ref, null, 'r')
      for (let loss = 0; loss < CAP; loss++) await stage.dying.takeAndDie('poison')
      const worker = await app.work()
      await reached.promise
      await worker.stop()
      const run = await app.engine.getRun('r')
      assert.equal(run?.status, 'suspended')
      assert.equal(run?.recoveryAttempts, CAP)
    })

    test('DL-11: a worker whose slots are all wanted takes a suspect between the others', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { engine } = app
      registerPipeline(engine)
      await engine.start(PIPELINE, { lines: 1 }, 'r')
      await stage.dying.takeAndDie('pipeline')
      await stage.dying.takeAndDie('pipeline')
      const lost = await stage.store.getRun('r')
      assert.equal(lost?.claimKey, suspectKey(claimKey('default', 'pipeline', '1')))
      let isEnough = false
      let sequence = 0
      const endless = engine.register('endless', '1', async (ctx) => {
        await ctx.localStep('work', () => new Promise((resolve) => setTimeout(resolve, 2)))
        if (!isEnough)
          await ctx.localStep('next', () => engine.start('endless', null, `e${sequence++}`))
      })
      for (let index = 0; index < 6; index++) await engine.start(endless, null)
      await app.work({ concurrency: 2 })
      const run = await engine.waitForRun('r', { timeoutMs: 10_000 })
      isEnough = true
      assert.equal(run.status, 'completed')
    })

    test('DL-11: what was claimed is executed though the look for suspects beside it fails (P4)', async ({
      assert,
    }) => {
      const app = await stage.app()
      const { store } = stage
      registerPipeline(app.engine)
      const own = await internalsOf(app.engine).store()
      const claim = own.claim.bind(own)
      own.claim = async (request) => {
        if (request.claimKeys.some((key) => key.startsWith(' '))) throw new Error('It is away')
        return claim(request)
      }
      await app.engine.start(PIPELINE, { lines: 1 }, 'r')
      await app.work()
      const run = await app.engine.waitForRun('r', { timeoutMs: 5_000 })
      assert.equal(run.status, 'completed')
      assert.deepEqual(await store.findStranded(), [])
    })

    test('DL-11: a worker warns of a cap below 3 when it starts, and of no other', async ({
      assert,
    }) => {
      for (const cap of [1, 2, 3, 5, undefined]) {
        const app = await stage.app({ maxRecoveryAttempts: cap })
        await app.work()
        const warned = app.log.lines.filter(({ args }) => /maxRecoveryAttempts/.test(String(args)))
        assert.lengthOf(warned, cap !== undefined && cap < 3 ? 1 : 0, `cap ${cap}`)
      }
    })
  })
)
