import { test } from '@japa/runner'
import type { PgClient } from '../../src/stores/lucid/postgres/driver.ts'
import { PostgresSession } from '../../src/stores/lucid/postgres/session.ts'
import { PostgresDatabase } from './postgres_database.ts'
import { SKIPPED } from './postgres_server.ts'

interface PlanNode {
  'Relation Name'?: string
  'Index Cond'?: string
  'Plans'?: PlanNode[]
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)]
}

test.group('PostgreSQL loads', (group) => {
  group.tap((each) => each.skip(SKIPPED !== null, SKIPPED ?? ''))

  test('the rows of the asked runs are found by their ids, though the plan is made beside empty tables', async ({
    assert,
    cleanup,
  }) => {
    const database = await PostgresDatabase.create()
    cleanup(() => database.remove())
    const statements: string[] = []
    const store = await database.store({ trace: (sql) => statements.push(sql) })
    await store.load([{ runId: 'r1', resident: false, inboxAfter: 0 }])
    const [load = ''] = statements.filter((sql) => sql.includes('durable_history'))

    const client = await database.client()
    const session = await PostgresSession.over(client as unknown as PgClient, {
      ...{ trace: undefined, statementMs: 10_000, lockMs: 1_000, onEnd: () => {} },
    })
    const values = Array.from(load.matchAll(/\?/g), () => '["r1"]')
    const [result] = await session.run([{ sql: `explain (format json) ${load}`, values }])
    const rows = (result?.rows ?? []) as { 'QUERY PLAN': { Plan: PlanNode }[] }[]
    const nodes = rows.flatMap((row) => row['QUERY PLAN'].flatMap(({ Plan }) => nodesOf(Plan)))
    for (const table of ['history', 'inbox', 'payloads', 'runs', 'waits']) {
      const found = nodes.filter((node) => node['Relation Name'] === `durable_${table}`)
      assert.isNotEmpty(found, table)
      for (const node of found) assert.match(node['Index Cond'] ?? '', /\b(run_)?id = /, table)
    }
  })
})
