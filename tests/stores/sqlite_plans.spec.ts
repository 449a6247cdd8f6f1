import { test } from '@japa/runner'
import { claimKeyOf, newWorker, start } from '../../src/testing/conformance/writes.ts'
import { DUE_RUNS, IS_ANY_DUE } from '../../src/stores/lucid/sqlite/claim.ts'
import { FRAGMENTS } from '../../src/stores/lucid/sqlite/fragments.ts'
import { SqliteDatabase } from './sqlite_database.ts'

interface PlanRow {
  id: number
  parent: number
  detail: string
}

const SLEEPERS = 200_000
const KEYS = ['a', 'b', 'c'].map(claimKeyOf)

test.group('SQLite claims beside many sleepers', (group) => {
  let database: SqliteDatabase
  group.setup(async () => {
    database = await SqliteDatabase.create()
    const store = await database.store()
    await store.registerWorker(newWorker('w1'))
    await database.db.rawQuery(
      `insert into durable_runs (id, workflow, version, claim_key, namespace, status, phase, priority, due_at,
        token, recovery_attempts, inbox_seq, handoffs, created_by, format, created_at, updated_at)
      with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)
      select 'sleeper' || i, 'a', '1', ?, 'default', 'suspended', 'body', i % 4, ${FRAGMENTS.now} + 3600000 + i,
        1, 0, 0, 0, 'me', 1, i, i from n`,
      [SLEEPERS, claimKeyOf('a')]
    )
    return () => database.remove()
  })

  const values = [JSON.stringify(KEYS), 'w1']
  const claims = [
    { sql: IS_ANY_DUE, values },
    { sql: DUE_RUNS, values: [...values, 50, 50] },
  ]

  /** How the rows of runs are found, and by which loops around. */
  async function planOf(claim: (typeof claims)[number]) {
    const plan: PlanRow[] = await database.db.rawQuery(
      `explain query plan ${claim.sql}`,
      claim.values
    )
    const runs = plan.filter(({ detail }) => /\b(SCAN|SEARCH) [rx]\b/.test(detail))
    const sorts = plan.filter(({ detail }) => detail.startsWith('USE TEMP B-TREE'))
    return {
      runs: runs.map(({ detail }) => detail.replace(' EXISTS', '')),
      sorts: sorts.map(({ parent }) => parent),
    }
  }

  const RANGE =
    'SEARCH x USING INDEX durable_runs_due (claim_key=? AND priority=? AND due_at>? AND due_at<?)'

  test('a claim reads one range of the index of due rows for each key and priority, and sorts only what it found', async ({
    assert,
  }) => {
    for (const prepare of ['pragma user_version', 'analyze']) {
      await database.db.rawQuery(prepare)
      const [probe, claim] = await Promise.all(claims.map(planOf))
      assert.deepEqual(probe, { runs: [RANGE], sorts: [] })
      assert.deepEqual(claim, {
        runs: ['SEARCH r USING INTEGER PRIMARY KEY (rowid=?)', RANGE],
        sorts: [0],
      })
    }
  })

  test('a claim takes what is due, and the sleepers stay', async ({ assert }) => {
    const store = await database.store()
    const ids = Array.from({ length: 100 }, (_, index) => `due${index}`)
    await store.commit(ids.map((id, index) => start(id, { workflow: index % 2 ? 'a' : 'b' })))
    const took: number[] = []
    const claimed: string[] = []
    for (let round = 0; round < 10; round++) {
      const begin = performance.now()
      const rows = await store.claim({ owner: 'w1', claimKeys: KEYS, limit: 10 })
      took.push(performance.now() - begin)
      claimed.push(...rows.map(({ id }) => id))
    }
    assert.deepEqual(claimed.toSorted(), ids.toSorted())
    assert.deepEqual(await store.claim({ owner: 'w1', claimKeys: KEYS, limit: 10 }), [])
    const median = took.toSorted((one, other) => one - other)[5]
    console.log(
      `      claims of 10 runs beside ${SLEEPERS} sleepers: median ${median?.toFixed(2)} ms`
    )
  })

  test('the nearest due time is found by the same index', async ({ assert }) => {
    const store = await database.store()
    const dueIn = await store.nextDueIn(KEYS)
    assert.isAbove(dueIn ?? 0, 3_000_000)
    assert.isNull(await store.nextDueIn([claimKeyOf('c')]))
  })

  test('more keys than one compound query may have are all asked for', async ({ assert }) => {
    const store = await database.store()
    const workflows = Array.from({ length: 230 }, (_, index) => `many ${index}`)
    for (const index of [229, 5, 120]) {
      await store.commit([start(`m${index}`, { workflow: `many ${index}` })])
      await store.advanceClock(10)
    }
    const request = { owner: 'w1', claimKeys: workflows.map(claimKeyOf) }
    const first = await store.claim({ ...request, limit: 2 })
    const second = await store.claim({ ...request, limit: 2 })
    assert.deepEqual(
      [...first, ...second].map(({ id }) => id),
      ['m229', 'm5', 'm120']
    )
  })
})
