import { test } from '@japa/runner'
import { DurableApp } from '../support/durable_app.ts'
import type { PostgresDatabase } from '../stores/postgres_database.ts'
import { usePostgres } from '../stores/postgres_group.ts'
import { proxiedStore } from '../stores/proxied_store.ts'
import { cleanUp } from '../support/clean_up.ts'
import { Gate } from '../support/gate.ts'
import { until } from '../support/until.ts'

const OPTIONS = { leaseMs: 1_500, pollMs: 20, idlePollMs: 50, maxRecoveryAttempts: 3 }

test.group('PostgreSQL away for longer than every lease', (group) => {
  let database: PostgresDatabase
  let close: (() => unknown)[]
  usePostgres(group, async (created) => {
    database = created
    close = []
    return () => cleanUp(...close)
  })

  /** An application whose only way to the database is through a proxy, with a run `id` in a step. */
  async function inAStep(id: string) {
    const { store, proxy, end } = await proxiedStore(database, { busyLimitMs: 1_000 })
    const app = new DurableApp({ store, options: OPTIONS })
    const gate = new Gate()
    const ref = app.engine.register(id, '1', (ctx) =>
      ctx.localStep('wait', ({ signal }) => gate.pass(signal))
    )
    close.push(
      () => proxy.up(),
      () => gate.open(),
      () => app.close(),
      () => end()
    )
    await app.work({ name: id })
    await app.engine.start(ref, null, id)
    await gate.reached()
    return { proxy, gate }
  }

  test('DL-10: three times over, no run is counted, and each goes on in its own process (P9)', async ({
    assert,
  }) => {
    const direct = await database.store()
    const both = [await inAStep('a'), await inAStep('b')]
    for (let outage = 0; outage < 3; outage++) {
      for (const { proxy } of both) proxy.down()
      await until(async () => {
        const [now, workers] = await Promise.all([direct.now(), direct.listWorkers()])
        return workers.every((worker) => worker.until < now)
      })
      for (const { proxy } of both) proxy.up()
      await until(async () => {
        const [now, workers] = await Promise.all([direct.now(), direct.listWorkers()])
        return workers.every((worker) => worker.until > now)
      })
    }
    for (const { gate } of both) gate.open()
    for (const id of ['a', 'b']) {
      await until(async () => {
        const run = await direct.getRun(id)
        return run?.status === 'completed'
      })
      const run = await direct.getRun(id)
      assert.equal(run?.recoveryAttempts, 0)
    }
    for (const { gate } of both) assert.equal(gate.arrived, 1)
    assert.deepEqual(await direct.findStranded(), [])
  }).timeout(60_000)
})
