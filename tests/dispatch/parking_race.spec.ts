import { test } from '@japa/runner'
import { dispatched, newWorker, startLeased, turn } from '../../src/testing/conformance/writes.ts'
import type { PostgresDatabase } from '../stores/postgres_database.ts'
import { Holder, untilWaiting } from '../stores/postgres_gate.ts'
import { usePostgres } from '../stores/postgres_group.ts'

/** Longer than any test takes to let go of what recovery waits for. */
const LOCK_MS = 10_000

test.group('Parking beside others (PostgreSQL)', (group) => {
  let database: PostgresDatabase
  usePostgres(group, async (created) => {
    database = created
  })

  /** Recovery waits for the lock on a run, which a writer holds that does `before` and then lets go. */
  async function recoveredAfter(before: (holder: Holder) => Promise<unknown>) {
    const store = await database.store({ lockMs: LOCK_MS })
    const worker = newWorker('w1')
    await store.registerWorker(worker)
    await store.commit([startLeased('r')])
    await store.commit([turn({ id: 'r', token: 1 }, { opened: [dispatched(0)] })])
    await store.advanceClock(worker.leaseMs)
    const holder = await Holder.begin(database)
    await holder.lockRun('r')
    const recovered = store.recoverExpired()
    await untilWaiting(database, 1)
    await before(holder)
    await holder.commit()
    const { runs } = await recovered
    const run = await store.getRun('r')
    return { runs, run, isDue: (run?.dueAt ?? Infinity) <= (await store.now()) }
  }

  test('DL-5: a result that is being stored while its run is parked is not overlooked', async ({
    assert,
  }) => {
    const { runs, run, isDue } = await recoveredAfter(async (holder) => {
      await holder.run(`update durable_runs set inbox_seq = 1 where id = 'r'`)
      await holder.run(`insert into durable_inbox (run_id, no, kind, seq, received_at, payload, generation, attempt,
        dispatch_id, result_status) values ('r', 1, 'result', 0, 0, '{"v":1}', 1, 1, 'd', 'completed')`)
    })
    assert.deepEqual([runs, run?.status, run?.owner], [1, 'suspended', null])
    assert.isTrue(isDue)
  })

  test('a run whose step is answered while recovery waits for it is not parked, and due at once', async ({
    assert,
  }) => {
    const { runs, run, isDue } = await recoveredAfter((holder) =>
      holder.run(`delete from durable_waits where run_id = 'r'`)
    )
    assert.deepEqual([runs, run?.status], [1, 'running'])
    assert.isTrue(isDue)
  })

  test('a run that suspends while recovery waits for it is left alone', async ({ assert }) => {
    const { runs, run, isDue } = await recoveredAfter((holder) =>
      holder.run(
        `update durable_runs set status = 'suspended', owner = null, due_at = 9e15 where id = 'r'`
      )
    )
    assert.deepEqual([runs, run?.status, run?.parkedAt], [0, 'suspended', null])
    assert.isFalse(isDue)
  })
})
