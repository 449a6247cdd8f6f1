import { test } from '@japa/runner'
import { setImmediate as nextRound } from 'node:timers/promises'
import { internalsOf, type WorkflowEngine } from '../../src/engine/engine.ts'
import { E_WORKER_NAME_TAKEN, FatalError } from '../../src/errors.ts'
import type { StepContext } from '../../src/types/step.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { onlyWorker } from '../support/only_worker.ts'
import { Cluster, THREE } from './cluster.ts'
import type { Connection } from '../support/connection.ts'
import { endOf, factsOf } from './run_facts.ts'
import { storedRun } from '../support/stored_run.ts'
import { until } from '../support/until.ts'

const LEASE_MS = 600
const OPTIONS = { leaseMs: LEASE_MS, pollMs: 20, idlePollMs: 50 }

onEach(KINDS, (kind) =>
  test.group(`Leases of workers (${kind})`, (group) => {
    let cluster: Cluster
    group.each.setup(async () => {
      cluster = await Cluster.on(kind)
      return () => cluster.close()
    })
    const application = () => cluster.application(OPTIONS)

    /** Lets the lease of the only live worker lapse, recovers it, and returns once the worker is a new instance. */
    async function loseLease(connection: Connection): Promise<void> {
      const store = await cluster.store()
      const registering = connection.called('registerWorker')
      connection.freeze(['renewWorker'])
      // The worker's own pass of recovery may come first.
      await until(async () => {
        await store.recoverExpired()
        const workers = await store.listWorkers()
        return workers.some(({ lost }) => lost)
      })
      connection.thaw(['renewWorker'])
      await registering
    }

    /** Keeps the lease of the only worker from being renewed, and returns once it may have lapsed. */
    async function letLapse(connection: Connection): Promise<void> {
      const renewing = connection.called('renewWorker')
      connection.freeze(['renewWorker'])
      await renewing
      const store = await cluster.store()
      const worker = await onlyWorker(store)
      await until(async () => (await store.now()) > worker.until)
    }

    /** Resolves once the first step is recorded, and its worker has done what follows from that. */
    async function firstRecorded(engine: WorkflowEngine): Promise<void> {
      await until(async () => {
        const { records } = await factsOf(engine, 'r')
        return records.length === 1
      })
      await internalsOf(engine).commits.idle()
      for (let round = 0; round < 5; round++) await nextRound()
    }

    test('a worker that falls silent loses its run to another one after leaseMs, once and counted, and its own writes are refused from then on (DL-1, P1)', async ({
      assert,
    }) => {
      const silent = await application()
      const other = await application()
      await silent.app.work({ name: 'silent' })
      await silent.engine.start(THREE, null, 'r')
      silent.gates[0].open()
      await silent.gates[1].reached()
      await other.app.work({ name: 'other' })
      other.openAll()

      silent.connection.freeze()
      const fellSilent = performance.now()
      const end = await endOf(other.engine, 'r')
      const tookMs = performance.now() - fellSilent
      assert.equal(end.status, 'completed')
      assert.equal(end.recoveryAttempts, 1)
      assert.lengthOf(end.records, 3)
      assert.isBelow(tookMs, LEASE_MS + 5_000)
      assert.equal(other.gates[0].arrived, 0)
      const history = await other.engine.getHistory('r')

      const writing = silent.connection.called('commit')
      silent.openAll()
      await writing
      silent.connection.thaw()
      await silent.connection.called('registerWorker')
      assert.equal(silent.gates[2].arrived, 0)
      assert.deepEqual(await other.engine.getHistory('r'), history)
      assert.deepEqual(await other.engine.findStranded(), [])
    })

    test('what a body has done is not undone under a lease that was lost since the body failed (P1, P2)', async ({
      assert,
    }) => {
      const { app, engine, connection } = await application()
      const undone: number[] = []
      const saga = engine.register('saga', '1', async (ctx) => {
        const undo = (_output: unknown, step: StepContext) => void undone.push(step.attempt)
        await ctx.localStep('charge', () => 'charged', { compensate: undo })
        throw new FatalError('no seats', 'sold_out')
      })
      const worker = await app.work({ name: 'a' })
      await worker.whenIdle()
      connection.freeze(['load'])
      const loading = connection.called('load')
      await engine.start(saga, null, 'r')
      await loading
      await loseLease(connection)
      connection.thaw(['load'])
      const end = await endOf(engine, 'r')
      assert.equal(end.status, 'failed')
      assert.deepEqual(undone, [1])
    })

    test('a worker whose lease was recovered voids its turns and goes on as a new instance', async ({
      assert,
    }) => {
      const { app, engine, connection, gates, openAll } = await application()
      await app.work({ name: 'a' })
      const before = await onlyWorker(engine)
      await engine.start(THREE, null, 'r')
      await gates[0].reached()
      await loseLease(connection)
      openAll()
      const end = await endOf(engine, 'r')
      assert.equal(end.status, 'completed')
      assert.equal(end.recoveryAttempts, 1)
      assert.lengthOf(end.records, 3)
      const workers = await engine.listWorkers()
      const live = workers.filter(({ lost }) => !lost)
      assert.lengthOf(live, 1)
      assert.equal(live[0]?.name, before.name)
      assert.notEqual(live[0]?.instance, before.instance)
      assert.equal(gates[0].arrived, 2)
    })

    test('a run that was claimed under a lease lost meanwhile is not begun, and the same process takes it up anew (P2)', async ({
      assert,
    }) => {
      const { app, engine, connection, gates, openAll } = await application()
      const starter = await application()
      await app.work()
      connection.freeze(['load'])
      const loading = connection.called('load')
      await starter.engine.start(THREE, null, 'r')
      await loading
      await loseLease(connection)
      connection.thaw()
      await gates[0].reached()
      openAll()
      const end = await endOf(engine, 'r')
      assert.equal(end.status, 'completed')
      assert.lengthOf(end.records, 3)
      assert.equal(gates[0].arrived, 1)
    })

    test('a lease that is lost while a run is being begun makes way for a new instance at once', async ({
      assert,
    }) => {
      const before = await cluster.application({ ...OPTIONS, drainMs: 50 })
      const parentOn = ({ engine }: typeof before) =>
        engine.register('parent', '1', (ctx) => ctx.child(THREE, null))
      const parent = parentOn(before)
      const first = await before.app.work()
      await before.engine.start(parent, null, 'p')
      await before.gates[0].reached()
      await first.stop()

      const { app, engine, connection, openAll } = await application()
      parentOn({ ...before, engine })
      openAll()
      connection.freeze(['childStates'])
      const beginning = connection.called('childStates')
      await app.work()
      await beginning
      await loseLease(connection)
      connection.thaw()
      const end = await endOf(engine, 'p')
      assert.equal(end.output, 'done')
    })

    test('a run that the same process took up again is handed back at its stop, whatever still ends of the turn it had lost (P4)', async ({
      assert,
    }) => {
      const { app, engine, connection, gates } = await cluster.application({
        ...OPTIONS,
        drainMs: 50,
      })
      const worker = await app.work()
      await engine.start(THREE, null, 'r')
      await gates[0].reached()
      connection.freeze(['commit'])
      const writing = connection.called('commit')
      gates[0].open()
      await writing
      await loseLease(connection)
      await gates[0].reached(2)
      connection.thaw()
      await gates[1].reached()
      await worker.stop()
      const run = await factsOf(engine, 'r')
      assert.equal(run.status, 'suspended')
      assert.equal(run.recoveryAttempts, 1)
      assert.deepEqual(await engine.findStranded(), [])
    })

    test('no step starts while the lease may have lapsed, and it starts once the lease is certain again (P2)', async ({
      assert,
    }) => {
      const { app, engine, connection, gates } = await application()
      await app.work({ name: 'a' })
      await engine.start(THREE, null, 'r')
      await gates[0].reached()
      gates[1].open()
      gates[2].open()
      await letLapse(connection)
      gates[0].open()
      await firstRecorded(engine)
      assert.equal(gates[1].arrived, 0)
      connection.thaw()
      const end = await endOf(engine, 'r')
      assert.equal(end.status, 'completed')
      assert.equal(end.recoveryAttempts, 0)
    })

    test('a step does not begin whose run was cancelled while the lease was uncertain (P1, P2)', async ({
      assert,
    }) => {
      const { app, engine, connection, gates } = await application()
      await app.work({ name: 'a' })
      await engine.start(THREE, null, 'r')
      await gates[0].reached()
      await letLapse(connection)
      gates[0].open()
      await firstRecorded(engine)
      await engine.cancel('r')
      // What the cancel has done is told after its answer.
      await nextRound()
      connection.thaw()
      await connection.called('renewWorker', 2)
      assert.equal(gates[1].arrived, 0)
      assert.deepEqual(await engine.findStranded(), [])
    })

    test('a run that a live worker holds without knowing of it is released uncounted, and executed (P4)', async ({
      assert,
    }) => {
      const { app, engine, openAll } = await application()
      await app.work()
      const store = await cluster.store()
      const worker = await onlyWorker(store)
      await store.commit([storedRun(THREE.name, { id: 'r', leaseTo: worker.instance })])
      openAll()
      const end = await endOf(engine, 'r')
      assert.equal(end.status, 'completed')
      assert.equal(end.recoveryAttempts, 0)
      assert.lengthOf(end.records, 3)
    })

    test('the name of a live worker is refused to another one', async ({ assert }) => {
      const first = await application()
      const second = await application()
      await first.app.work({ name: 'mail' })
      await assert.rejects(() => second.app.work({ name: 'mail' }), E_WORKER_NAME_TAKEN)
      await second.app.work({ name: 'other' })
    })

    test('workers without a name take the first free number of their host', async ({ assert }) => {
      const first = await application()
      const second = await application()
      await first.app.work()
      await second.app.work()
      const [one, other] = await first.engine.listWorkers()
      assert.match(one?.name ?? '', /:1$/)
      assert.match(other?.name ?? '', /:2$/)
    })
  })
)
