import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import { FatalError } from '../../src/errors.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { Cluster, THREE } from './cluster.ts'
import { endOf, factsOf } from './run_facts.ts'
import { until } from '../support/until.ts'

const LEASE_MS = 600
const OPTIONS = { leaseMs: LEASE_MS, pollMs: 20, idlePollMs: 50 }

/** Starts a run that fails, and waits until its handler waits for the signal "decided". */
async function following(engine: WorkflowEngine, runId: string): Promise<void> {
  const handler = engine.register('handler', '1', async (ctx) => {
    await ctx.waitForSignal('decided')
    return 'handled'
  })
  const fail = () => {
    throw new FatalError('No', 'bad')
  }
  const onError = [{ code: 'bad', workflow: handler }]
  const failing = engine.register('failing', '1', fail, { onError })
  await engine.start(failing, null, runId)
  await until(async () => {
    const { runs } = await engine.listRuns({ status: 'suspended' })
    return runs.length === 2
  })
}

onEach(KINDS, (kind) =>
  test.group(`A database that is away (${kind})`, (group) => {
    let cluster: Cluster
    group.each.setup(async () => {
      cluster = await Cluster.on(kind)
      return () => cluster.close()
    })
    const application = () => cluster.application(OPTIONS)
    const away = () => new Error('The database is away')

    test('the end of a run is written once commits are accepted again, and counts nothing (P9, case 8)', async ({
      assert,
    }) => {
      const { app, engine, connection, gates, openAll } = await application()
      await app.work()
      await engine.start(THREE, null, 'r')
      gates[0].open()
      gates[1].open()
      await gates[2].reached()
      connection.lose(away(), ['commit'])
      openAll()
      await connection.called('commit', 3)
      const cut = await factsOf(engine, 'r')
      assert.equal(cut.status, 'running')
      connection.restore()
      const run = await endOf(engine, 'r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, 0)
      assert.deepEqual(
        gates.map((gate) => gate.arrived),
        [1, 1, 1]
      )
      assert.lengthOf(run.records, 3)
    })

    test('a run that follows its handler goes on once its outcome can be read again, and is not blocked (P9)', async ({
      assert,
    }) => {
      const { app, engine, connection } = await application()
      await app.work()
      await following(engine, 'r')
      connection.lose(away(), ['childOutcomes'])
      await engine.signal('decided')
      await connection.called('childOutcomes', 2)
      const cut = await factsOf(engine, 'r')
      assert.equal(cut.status, 'running')
      connection.restore()
      const run = await endOf(engine, 'r')
      assert.equal(run.status, 'completed')
      assert.equal(run.output, 'handled')
      assert.equal(run.recoveryAttempts, 0)
    })

    test('a run whose handler cannot be read about is handed back by a worker that stops, uncounted (P4, P9)', async ({
      assert,
    }) => {
      const { app, engine, connection } = await application()
      const worker = await app.work()
      await following(engine, 'r')
      connection.lose(away(), ['childOutcomes'])
      const read = connection.called('childOutcomes')
      await engine.signal('decided')
      await read
      await worker.stop()
      const run = await factsOf(engine, 'r')
      assert.equal(run.status, 'suspended')
      assert.equal(run.recoveryAttempts, 0)
    })

    test('starting a run and sending a signal reject with the error of the driver, and nothing of them is done later (P9)', async ({
      assert,
    }) => {
      const { engine, connection, openAll } = await application()
      openAll()
      await engine.start(THREE, null, 'before')
      const error = away()
      connection.lose(error, ['commit'])
      const refused = await Promise.allSettled([
        engine.start(THREE, null, 'refused'),
        engine.signal('token', 1),
      ])
      for (const result of refused) {
        assert.equal(result.status, 'rejected')
        if (result.status === 'rejected') assert.strictEqual(result.reason, error)
      }
      connection.restore()
      await engine.start(THREE, null, 'after')
      assert.isNull(await engine.getRun('refused'))
      const { delivered } = await engine.signal('token', 2)
      assert.isFalse(delivered)
    })

    test('after an outage longer than the lease every worker goes on with its own runs: nobody recovers anybody, and nothing is counted (P9, DL-10)', async ({
      assert,
    }) => {
      const two = [await application(), await application()]
      for (const [index, { app, engine, gates }] of two.entries()) {
        const worker = await app.work()
        // From then on it executes what its own application starts, and leaves it to nobody.
        await worker.whenIdle()
        await engine.start(THREE, null, `r${index}`)
        await gates[0].reached()
      }
      const store = await cluster.store()
      const expired = async () => {
        const now = await store.now()
        const workers = await store.listWorkers()
        return workers.every((worker) => worker.until < now)
      }
      for (const { connection } of two) connection.lose(away())
      await until(expired)
      for (const { gates } of two) gates[0].open()
      for (const { connection } of two) connection.restore()
      for (const { openAll } of two) openAll()
      for (const [index, { engine, gates }] of two.entries()) {
        const run = await engine.waitForRun(`r${index}`)
        assert.equal(run.status, 'completed')
        assert.equal(run.recoveryAttempts, 0)
        assert.deepEqual(
          gates.map((gate) => gate.arrived),
          [1, 1, 1]
        )
      }
    })

    test('a worker recovers others only once its own renewals have succeeded for a whole lease (P9, case 1)', async ({
      assert,
    }) => {
      const lost = await application()
      const healthy = await application()
      await lost.app.work()
      await lost.engine.start(THREE, null, 'r')
      await lost.gates[0].reached()
      await healthy.app.work()
      healthy.openAll()
      await until(async () => healthy.connection.calls('recoverExpired') > 0)
      healthy.connection.lose(away())
      lost.connection.freeze()
      const store = await cluster.store()
      await until(async () => {
        const now = await store.now()
        const workers = await store.listWorkers()
        return workers.every((worker) => worker.until < now)
      })
      const passes = healthy.connection.calls('recoverExpired')
      healthy.connection.restore()
      const returned = performance.now()
      await healthy.connection.called('recoverExpired')
      assert.isAtLeast(performance.now() - returned, LEASE_MS)
      assert.equal(healthy.connection.calls('recoverExpired'), passes + 1)
      const run = await healthy.engine.waitForRun('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, 1)
    })

    test('recovery goes on after passes that failed (case 1)', async ({ assert }) => {
      const lost = await application()
      const other = await application()
      await lost.app.work()
      await lost.engine.start(THREE, null, 'r')
      await lost.gates[0].reached()
      await other.app.work()
      other.openAll()
      other.connection.lose(away(), ['recoverExpired'])
      lost.connection.freeze()
      await other.connection.called('recoverExpired', 2)
      other.connection.restore()
      const run = await other.engine.waitForRun('r')
      assert.equal(run.status, 'completed')
      assert.equal(run.recoveryAttempts, 1)
    })

    for (const method of ['claim', 'load', 'nextDueIn', 'childOutcomes', 'renewWorker'] as const)
      test(`a worker whose calls of ${method} fail for a while goes on afterwards (P9)`, async ({
        assert,
      }) => {
        const { app, engine, connection, openAll } = await application()
        const starter = await application()
        openAll()
        const parent = engine.register('parent', '1', (ctx) => ctx.child(THREE, null))
        await app.work()
        connection.lose(away(), [method])
        await starter.engine.start(parent, null, 'p')
        await connection.called(method, 2)
        connection.restore()
        const run = await engine.waitForRun('p')
        assert.equal(run.status, 'completed')
        assert.equal(run.recoveryAttempts, 0)
        const child = await factsOf(engine, 'p.child.0')
        assert.equal(child.recoveryAttempts, 0)
      })
  })
)
