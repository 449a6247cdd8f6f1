import { test } from '@japa/runner'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { CLAIM, claimStatement } from '../../src/stores/lucid/postgres/claim.ts'
import type { PgClient } from '../../src/stores/lucid/postgres/driver.ts'
import { FRAGMENTS } from '../../src/stores/lucid/postgres/fragments.ts'
import { PostgresSession } from '../../src/stores/lucid/postgres/session.ts'
import { claimKeyOf, newWorker, start } from '../../src/testing/conformance/writes.ts'
import { PostgresDatabase } from './postgres_database.ts'
import { SKIPPED } from './postgres_server.ts'

const SLEEPERS = 200_000
const KEYS = ['a', 'b', 'c'].map(claimKeyOf)

interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  'Actual Rows'?: number
  'Actual Loops'?: number
  'Plans'?: PlanNode[]
}

test.group('PostgreSQL claims beside many sleepers', (group) => {
  let database: PostgresDatabase
  let store: LucidStore

  group.setup(async () => {
    if (SKIPPED !== null) return () => {}
    database = await PostgresDatabase.create()
    store = await database.store()
    for (const instance of ['w1', 'w2']) await store.registerWorker(newWorker(instance))
    await database.query(
      `insert into durable_runs (id, workflow, version, claim_key, namespace, status, phase, priority, due_at,
        token, recovery_attempts, handoffs, inbox_seq, created_by, format, created_at, updated_at)
      select 'sleeper' || i, 'a', '1', '${claimKeyOf('a')}', 'default', 'suspended', 'body', i % 4,
        ${FRAGMENTS.now} + 3600000 + i, 1, 0, 0, 0, 'me', 1, i, i from generate_series(1, ${SLEEPERS}) i`
    )
    return () => database.remove()
  })
  group.tap((each) => each.skip(SKIPPED !== null, SKIPPED ?? '').timeout(60_000))

  /** How the rows of runs are found, as a session of the store finds them. */
  async function planOf(options: string): Promise<PlanNode[]> {
    const client = await database.client()
    const session = await PostgresSession.over(client as unknown as PgClient, {
      ...{ trace: undefined, statementMs: 10_000, lockMs: 1_000, onEnd: () => {} },
    })
    const { sql, values } = claimStatement({ owner: 'w1', claimKeys: KEYS, limit: 50 })
    const explain = { sql: `explain (${options}format json) ${sql}`, values }
    const [result] = await session.run([explain])
    const rows = (result?.rows ?? []) as { 'QUERY PLAN': { Plan: PlanNode }[] }[]
    const found: PlanNode[] = []
    const collect = (node: PlanNode) => {
      if (node['Relation Name'] === 'durable_runs') found.push(node)
      for (const below of node.Plans ?? []) collect(below)
    }
    for (const { 'QUERY PLAN': plans } of rows) for (const { Plan } of plans) collect(Plan)
    return found
  }

  test('a claim reads one range of the index of due rows for each key and priority, whatever the statistics', async ({
    assert,
  }) => {
    assert.include(CLAIM, 'skip locked')
    for (const prepare of ['select 1', 'analyze durable_runs']) {
      await database.query(prepare)
      const all = await planOf('')
      const nodes = all.filter((node) => node['Index Name'])
      assert.deepEqual(
        nodes.map((node) => node['Index Name']),
        ['durable_runs_due', 'durable_runs_pkey', 'durable_runs_pkey']
      )
      assert.match(
        nodes[0]?.['Index Cond'] ?? '',
        /claim_key = k\.value.*priority = p\.value.*due_at <= /
      )
    }
    const nodes = await planOf('analyze, ')
    assert.equal(
      nodes.find((node) => node['Index Name'] === 'durable_runs_due')?.['Actual Rows'],
      0
    )
  })

  test('a claim takes what is due, and the sleepers stay', async ({ assert }) => {
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

  test('a second worker gets its share beside the first', async ({ assert }) => {
    const other = await database.store()
    const ids = Array.from({ length: 200 }, (_, index) => `both${index}`)
    await store.commit(ids.map((id) => start(id, { workflow: 'c' })))
    const request = { claimKeys: KEYS, limit: 50 }
    const [mine, theirs] = await Promise.all([
      store.claim({ owner: 'w1', ...request }),
      other.claim({ owner: 'w2', ...request }),
    ])
    assert.lengthOf(mine, 50)
    assert.lengthOf(theirs, 50)
  })

  test('the nearest due time is found by the same index', async ({ assert }) => {
    const dueIn = await store.nextDueIn([claimKeyOf('a'), claimKeyOf('nothing')])
    assert.isAbove(dueIn ?? 0, 3_000_000)
    assert.isNull(await store.nextDueIn([claimKeyOf('nothing')]))
  })
})
