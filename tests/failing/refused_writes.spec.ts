import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import { onEach, SQL_KINDS, type TestDatabase } from '../stores/databases.ts'
import { MAIN, Site } from './site.ts'

const TEXTS = {
  durable_history: ['output', 'error'],
  durable_payloads: ['output', 'error'],
  durable_runs: ['workflow'],
}
const VIOLATED = /violates .*constraint/

/** What makes a database take no text in which "unstorable" occurs. */
const CONSTRAINTS = {
  SQLite: (table: string, column: string) =>
    ['insert', 'update'].map(
      (change) => `create trigger ${table}_${column}_${change} before ${change} on ${table}
        when new.${column} like '%unstorable%'
        begin select raise(abort, 'violates a constraint'); end`
    ),
  PostgreSQL: (table: string, column: string) => [
    `alter table ${table} add constraint storable_${column}
      check (coalesce(${column}, '') not like '%unstorable%')`,
  ],
}

async function constrain(kind: keyof typeof CONSTRAINTS, database: TestDatabase): Promise<void> {
  for (const [table, columns] of Object.entries(TEXTS))
    for (const column of columns)
      for (const statement of CONSTRAINTS[kind](table, column)) await database.run(statement)
}

onEach(SQL_KINDS, (kind) =>
  test.group(`A run whose write the database refuses (${kind})`, (group) => {
    let engine: WorkflowEngine
    let undone: [string, unknown][]
    const undo = (name: string) => (output: unknown) => void undone.push([name, output])
    group.each.setup(async () => {
      const site = await Site.on(kind)
      await constrain(kind, site.database)
      undone = []
      const { engine: working } = await site.working()
      engine = working
      return () => site.close()
    })

    test('has failed by that, and undoes what it has done, the step that could not be recorded too', async ({
      assert,
    }) => {
      engine.register('main', '1', async (ctx) => {
        await ctx.localStep('first', () => 'one', { compensate: undo('first') })
        await ctx.localStep('second', () => 'unstorable', { compensate: undo('second') })
        await ctx.localStep('third', () => 'three', { compensate: undo('third') })
      })
      const { runId } = await engine.start(MAIN)
      const run = await engine.waitForRun(runId)
      assert.equal(run.status, 'failed')
      assert.match(run.error?.message ?? '', VIOLATED)
      assert.deepEqual(undone, [
        ['second', undefined],
        ['first', 'one'],
      ])
    })

    test('is handed to the handler of its failure', async ({ assert }) => {
      engine.register('rescue', '1', () => 'rescued')
      engine.register('main', '1', (ctx) => ctx.localStep('only', () => 'unstorable'), {
        onError: [{ workflow: 'rescue' }],
      })
      const { runId } = await engine.start(MAIN)
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.output], ['completed', 'rescued'])
    })

    test('whose output is refused undoes its steps', async ({ assert }) => {
      engine.register('main', '1', async (ctx) => {
        await ctx.localStep('first', () => 'one', { compensate: undo('first') })
        await ctx.sleep(1)
        return 'unstorable'
      })
      const { runId } = await engine.start(MAIN)
      const run = await engine.waitForRun(runId)
      assert.equal(run.status, 'failed')
      assert.match(run.error?.message ?? '', VIOLATED)
      assert.deepEqual(undone, [['first', 'one']])
    })

    test('has failed even where the run of its handler cannot be stored either', async ({
      assert,
    }) => {
      engine.register('unstorable', '1', () => 'rescued')
      engine.register('main', '1', (ctx) => ctx.localStep('only', () => 'unstorable'), {
        onError: [{ workflow: 'unstorable' }],
      })
      const { runId } = await engine.start(MAIN)
      const run = await engine.waitForRun(runId)
      assert.equal(run.status, 'failed')
      assert.match(run.error?.message ?? '', VIOLATED)
    })

    test('in a compensation has that one recorded as failed, and the others follow', async ({
      assert,
    }) => {
      engine.register('main', '1', async (ctx) => {
        await ctx.localStep('first', () => 'one', { compensate: undo('first') })
        await ctx.localStep('second', () => 'two', {
          compensate: () => {
            throw Object.assign(new Error('unstorable'), { retryable: false })
          },
        })
        await ctx.localStep('third', () => {
          throw Object.assign(new Error('sold out'), { retryable: false })
        })
      })
      const { runId } = await engine.start(MAIN)
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.error?.message], ['failed', 'sold out'])
      assert.deepEqual(undone, [['first', 'one']])
      const history = await engine.getHistory(runId)
      const compensations =
        history?.records.filter((record) => record.kind === 'compensation') ?? []
      assert.deepEqual(compensations.map(({ name, status }) => [name, status]).sort(), [
        ['first', 'completed'],
        ['second', 'failed'],
      ])
    })
  })
)
