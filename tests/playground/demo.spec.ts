import type { Assert } from '@japa/assert'
import { test } from '@japa/runner'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connectClient, SKIPPED } from '../stores/postgres_server.ts'
import {
  type DemoRun,
  isAlive,
  LINES,
  playground,
  runDemo,
  tableOf,
  workersOf,
} from './demo_run.ts'

/** The one that the demo repairs in its copy. */
const STEP = join(playground, 'app/steps/enrich_line.ts')

const DATABASES = [
  { db: 'sqlite', skipped: null },
  { db: 'postgres', skipped: SKIPPED },
]

function assertSameCounts(assert: Assert, lines: string[]): void {
  const table = tableOf(lines)
  assert.deepEqual(table.get('lines'), [String(LINES), String(LINES)])
  for (const [name, counts] of table) assert.lengthOf(new Set(counts), 1, name)
  for (const name of ['airports', 'rejected', 'rejected for iata']) {
    assert.lengthOf(table.get(name) ?? [], 3, name)
    assert.isAbove(Number(table.get(name)?.[0]), 0, name)
  }
}

/** The line that kills its worker: one ticket, one retry. */
function assertPoisonLine(assert: Assert, lines: string[]): void {
  const number = (text: string) => lines.filter((line) => line.includes(text)).length
  assert.equal(number('killed (SIGKILL)'), 1)
  // Four times, and once less if it was in the hands of the worker that was killed.
  const deaths = number('died (SIGKILL)')
  assert.include([3, 4], deaths)
  assert.equal(number('ticket: airports.line: run import.child.'), 1)
  assert.equal(number('running was step "line.enrich"'), 1)
  assert.equal(number('node ace durable:retry import'), 1)
  // Two at first, one for each that died, and two with the repaired step.
  assert.lengthOf(workersOf(lines), 2 + 1 + deaths + 2)
}

async function databaseOf({ pid }: DemoRun): Promise<unknown[]> {
  const client = await connectClient('postgres')
  const { rows } = await client
    .query('select 1 from pg_database where datname = $1', [`durable_demo_${pid}`])
    .finally(() => client.end())
  return rows
}

for (const { db, skipped } of DATABASES) {
  test.group(`Demo on ${db}`, () => {
    test('counts what a separate script counts when workers die and a step is repaired', async ({
      assert,
    }) => {
      const broken = await readFile(STEP, 'utf8')
      const run = await runDemo([`--db=${db}`])
      const { code, lines, isFolderLeft } = run
      assert.equal(code, 0, lines.join('\n'))
      assertSameCounts(assert, lines)
      assertPoisonLine(assert, lines)
      assert.include(broken, 'SIGKILL')
      assert.equal(await readFile(STEP, 'utf8'), broken)
      assert.deepEqual(workersOf(lines).filter(isAlive), [])
      assert.isFalse(isFolderLeft)
      if (db === 'postgres') assert.deepEqual(await databaseOf(run), [])
    })
      .skip(skipped !== null, skipped ?? '')
      .timeout(180_000)

    test('leaves neither a worker nor its data behind when it is told to end', async ({
      assert,
    }) => {
      const run = await runDemo([`--db=${db}`], (line, signal) => {
        if (line.includes('worker-2 started')) signal('SIGTERM')
      })
      const { code, lines, isFolderLeft } = run
      assert.equal(code, 1)
      assert.lengthOf(workersOf(lines), 2)
      assert.deepEqual(workersOf(lines).filter(isAlive), [])
      assert.isFalse(isFolderLeft)
      if (db === 'postgres') assert.deepEqual(await databaseOf(run), [])
    })
      .skip(skipped !== null, skipped ?? '')
      .timeout(180_000)
  })
}

test.group('Demo', () => {
  test('refuses a database that it does not know', async ({ assert }) => {
    const { code, lines } = await runDemo(['--db=oracle'])
    assert.equal(code, 1)
    assert.include(lines.join('\n'), 'expected one of sqlite, postgres')
  })
})
