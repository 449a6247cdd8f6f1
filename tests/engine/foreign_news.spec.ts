import { test } from '@japa/runner'
import type { PostgresDatabase } from '../stores/postgres_database.ts'
import { usePostgres } from '../stores/postgres_group.ts'
import { cleanUp } from '../support/clean_up.ts'
import { Connection } from '../support/connection.ts'
import { Gate } from '../support/gate.ts'
import { DurableApp } from '../support/durable_app.ts'

/** Nothing is found by looking now and then. */
const OPTIONS = { pollMs: 60_000, idlePollMs: 60_000, leaseMs: 120_000, hangMs: 180_000 }

test.group('Two applications on PostgreSQL', (group) => {
  let database: PostgresDatabase
  /** Executes runs. */
  let working: DurableApp
  /** Only starts them, sends to them and waits for them. */
  let asking: DurableApp
  let asked: Connection
  usePostgres(group, async (created) => {
    database = created
    working = new DurableApp({ store: await database.store(), options: OPTIONS })
    asked = new Connection(await database.store())
    asking = new DurableApp({ store: asked.store, options: OPTIONS })
    return () =>
      cleanUp(
        () => working.close(),
        () => asking.close()
      )
  })

  test('a run that one starts is executed by the other, which tells its end', async ({
    assert,
  }) => {
    working.engine.register('double', '1', async (ctx, input: number) => {
      const signal = await ctx.waitForSignal<number>('more')
      return ctx.localStep('double', () => 2 * input + signal)
    })
    await working.work()
    const handle = await asking.engine.start<number>({ name: 'double', version: '1' }, 4)
    await asking.engine.signal('more', 1)
    assert.equal(await handle.result(), 9)
  })

  test('a cancel aborts the step that the other is executing', async ({ assert }) => {
    const entered = new Gate()
    const aborted = Promise.withResolvers<unknown>()
    working.engine.register('long', '1', (ctx) =>
      ctx.localStep('long', async ({ signal }) => {
        signal.addEventListener('abort', () => aborted.resolve(signal.reason))
        await entered.pass(signal)
      })
    )
    await working.work()
    await asking.engine.start({ name: 'long', version: '1' }, null, 'r')
    await entered.reached()
    assert.isTrue(await asking.engine.cancel('r'))
    assert.propertyVal(await aborted.promise, 'code', 'cancelled')
  })

  test('who waits for a run is not made to look by what happens to others', async ({ assert }) => {
    const gate = new Gate()
    working.engine.register('one', '1', (ctx) => ctx.localStep('only', () => 1))
    working.engine.register('gated', '1', (ctx) => ctx.localStep('gate', () => gate.pass()))
    await working.work()
    const handle = await asking.engine.start({ name: 'gated', version: '1' }, null)
    await gate.reached()
    const looked = asked.called('statusesOf')
    const end = handle.result()
    await looked
    const before = asked.calls('statusesOf')
    const third = new DurableApp({ store: await database.store(), options: OPTIONS })
    for (let run = 0; run < 20; run++) {
      const other = await third.engine.start({ name: 'one', version: '1' }, null)
      await other.result()
    }
    assert.equal(asked.calls('statusesOf'), before)
    gate.open()
    await end
    await third.close()
  })
})
