import { test } from '@japa/runner'
import type { Flush } from '../../src/contracts/store.ts'
import type { Answer, Write } from '../../src/core/change_set.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { DurableApp } from '../engine/durable_app.ts'

/** A database with a constraint: it takes no text in which "unstorable" occurs. */
class ConstrainedStore extends MemoryStore {
  override async commit(writes: readonly Write[]): Promise<Flush> {
    const isTaken = (write: Write) =>
      write.type !== 'turn' ||
      !JSON.stringify([write.records, write.children, write.end]).includes('unstorable')
    const { answers, news } = await super.commit(writes.filter(isTaken))
    const given = answers.values()
    const refused = { type: 'refused' as const, error: new Error('violates a constraint') }
    const answerOf = (write: Write): Answer => (isTaken(write) ? given.next().value! : refused)
    return { answers: writes.map(answerOf), news }
  }
}

test.group('A run whose write the database refuses', (group) => {
  let app: DurableApp
  let undone: [string, unknown][]
  const undo = (name: string) => (output: unknown) => void undone.push([name, output])
  const main = { name: 'main', version: '1' }
  group.each.setup(async () => {
    app = new DurableApp({ store: new ConstrainedStore(new MemoryDatabase()) })
    undone = []
    await app.work()
    return () => app.close()
  })

  test('has failed by that, and undoes what it has done, the step that could not be recorded too', async ({
    assert,
  }) => {
    app.engine.register('main', '1', async (ctx) => {
      await ctx.localStep('first', () => 'one', { compensate: undo('first') })
      await ctx.localStep('second', () => 'unstorable', { compensate: undo('second') })
      await ctx.localStep('third', () => 'three', { compensate: undo('third') })
    })
    const { runId } = await app.engine.start(main)
    const run = await app.engine.waitForRun(runId)
    assert.deepEqual([run.status, run.error?.message], ['failed', 'violates a constraint'])
    assert.deepEqual(undone, [
      ['second', undefined],
      ['first', 'one'],
    ])
  })

  test('is handed to the handler of its failure', async ({ assert }) => {
    app.engine.register('rescue', '1', () => 'rescued')
    app.engine.register('main', '1', (ctx) => ctx.localStep('only', () => 'unstorable'), {
      onError: [{ workflow: 'rescue' }],
    })
    const { runId } = await app.engine.start(main)
    const run = await app.engine.waitForRun(runId)
    assert.deepEqual([run.status, run.output], ['completed', 'rescued'])
  })

  test('whose output is refused undoes its steps', async ({ assert }) => {
    app.engine.register('main', '1', async (ctx) => {
      await ctx.localStep('first', () => 'one', { compensate: undo('first') })
      await ctx.sleep(1)
      return 'unstorable'
    })
    const { runId } = await app.engine.start(main)
    const run = await app.engine.waitForRun(runId)
    assert.deepEqual([run.status, run.error?.message], ['failed', 'violates a constraint'])
    assert.deepEqual(undone, [['first', 'one']])
  })

  test('has failed even where its failure cannot be stored either', async ({ assert }) => {
    app.engine.register('unstorable', '1', () => 'rescued')
    app.engine.register('main', '1', (ctx) => ctx.localStep('only', () => 'unstorable'), {
      onError: [{ workflow: 'unstorable' }],
    })
    const { runId } = await app.engine.start(main)
    const run = await app.engine.waitForRun(runId)
    assert.deepEqual([run.status, run.error?.message], ['failed', 'violates a constraint'])
  })

  test('in a compensation has that one recorded as failed, and the others follow', async ({
    assert,
  }) => {
    app.engine.register('main', '1', async (ctx) => {
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
    const { runId } = await app.engine.start(main)
    const run = await app.engine.waitForRun(runId)
    assert.deepEqual([run.status, run.error?.message], ['failed', 'sold out'])
    assert.deepEqual(undone, [['first', 'one']])
    const history = await app.engine.getHistory(runId)
    const compensations = history?.records.filter(({ kind }) => kind === 'compensation') ?? []
    assert.deepEqual(compensations.map(({ name, status }) => [name, status]).sort(), [
      ['first', 'completed'],
      ['second', 'failed'],
    ])
  })
})
