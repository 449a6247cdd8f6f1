import { test } from '@japa/runner'
import { E_WORKER_NAME_TAKEN } from '../../src/errors.ts'
import { Cluster, THREE } from './cluster.ts'
import { DATABASES } from './databases.ts'
import { endOf, factsOf } from './run_facts.ts'
import { until } from './until.ts'

const LEASE_MS = 600
const OPTIONS = { leaseMs: LEASE_MS, pollMs: 20, idlePollMs: 50 }

for (const kind of Object.keys(DATABASES))
  test.group(`Leases of workers (${kind})`, (group) => {
    let cluster: Cluster
    group.each.setup(async () => {
      cluster = await Cluster.on(kind)
      return () => cluster.close()
    })
    const application = () => cluster.application(OPTIONS)

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

      silent.openAll()
      silent.connection.thaw()
      await silent.connection.called('registerWorker')
      assert.equal(silent.gates[2].arrived, 0)
      assert.deepEqual(await other.engine.getHistory('r'), history)
      assert.deepEqual(await other.engine.findStranded(), [])
    })

    test('a worker whose lease was recovered voids its turns and goes on as a new instance', async ({
      assert,
    }) => {
      const { app, engine, connection, gates, openAll } = await application()
      await app.work({ name: 'a' })
      const [before] = await engine.listWorkers()
      await engine.start(THREE, null, 'r')
      await gates[0].reached()
      const store = await cluster.store()
      connection.freeze(['renewWorker'])
      await until(async () => {
        const { runs } = await store.recoverExpired()
        return runs === 1
      })
      connection.thaw()
      await connection.called('registerWorker')
      openAll()
      const end = await endOf(engine, 'r')
      assert.equal(end.status, 'completed')
      assert.equal(end.recoveryAttempts, 1)
      assert.lengthOf(end.records, 3)
      const workers = await engine.listWorkers()
      const live = workers.filter(({ lost }) => !lost)
      assert.lengthOf(live, 1)
      assert.equal(live[0]?.name, before?.name)
      assert.notEqual(live[0]?.instance, before?.instance)
      assert.equal(gates[0].arrived, 2)
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
      const renewing = connection.called('renewWorker')
      connection.freeze(['renewWorker'])
      await renewing
      const store = await cluster.store()
      const [worker] = await store.listWorkers()
      await until(async () => (await store.now()) > (worker?.until ?? 0))

      gates[0].open()
      await until(async () => {
        const { records } = await factsOf(engine, 'r')
        return records.length === 1
      })
      await until(() => connection.calls('renewWorker') > 0)
      assert.equal(gates[1].arrived, 0)
      connection.thaw()
      const end = await endOf(engine, 'r')
      assert.equal(end.status, 'completed')
      assert.equal(end.recoveryAttempts, 0)
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
