import { test } from '@japa/runner'
import { CLAIM_KEY, claimKeyOf, newWorker } from '../../src/testing/conformance/writes.ts'
import { PostgresDatabase } from '../stores/postgres_database.ts'
import { deadlocks } from '../stores/postgres_gate.ts'
import { SKIPPED } from '../stores/postgres_server.ts'
import { raceOf } from './writers.ts'

const PROCESSES = 8
const ROUNDS = 60

test.group('PostgreSQL under several processes', (group) => {
  let database: PostgresDatabase
  group.each.setup(async () => {
    if (SKIPPED !== null) return () => {}
    database = await PostgresDatabase.create()
    return () => database.remove()
  })

  test('eight processes write the same runs without a deadlock, and each is started, claimed and ended once', async ({
    assert,
  }) => {
    const script = new URL('./postgres_writer.ts', import.meta.url)
    const { sum } = await raceOf(PROCESSES, script, { database: database.name, rounds: ROUNDS })
    assert.equal(sum('started'), ROUNDS + 1 + PROCESSES * ROUNDS)
    assert.deepEqual([sum('lost'), sum('refused')], [0, 0])
    assert.equal(sum('committed'), sum('claimed'))
    assert.equal(await deadlocks(database), 0)

    const store = await database.store()
    await store.registerWorker(newWorker('last'))
    assert.deepEqual(await store.findStranded(), [])
    const [counts] = await database.query(
      `select count(*) filter (where status = 'running')::integer as running,
        count(*) filter (where status = 'completed' and not exists
          (select 1 from durable_history h where h.run_id = r.id))::integer as unrecorded,
        (select count(*)::integer from durable_runs p where p.workflow = 'parent' and p.status = 'completed'
          and 2 <> (select count(*) from durable_runs c where c.parent_id = p.id and c.status = 'completed')) as early
      from durable_runs r`
    )
    assert.deepEqual(counts, { running: 0, unrecorded: 0, early: 0 })
    assert.isNumber(await store.nextDueIn([CLAIM_KEY, claimKeyOf('parent')]).then((ms) => ms ?? 0))
  })
    .timeout(120_000)
    .skip(SKIPPED !== null, SKIPPED ?? '')
})
