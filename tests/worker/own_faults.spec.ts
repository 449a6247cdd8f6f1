import { test } from '@japa/runner'
import type { Flush } from '../../src/contracts/store.ts'
import type { TurnEnd, Write } from '../../src/core/change_set.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { DurableApp } from '../support/durable_app.ts'
import { until } from '../support/until.ts'

const HOUR = 3_600_000
const WORK = { name: 'work', version: '1' }
const FAULT = 'Cannot read properties of undefined'

/** Its code fails on what turns write of one run. */
class FaultyStore extends MemoryStore {
  bad: string | null = null
  /** What it can write of that run all the same. */
  spared: readonly TurnEnd['kind'][] = ['block']
  /** How often it has failed. */
  faults = 0

  override async commit(writes: readonly Write[]): Promise<Flush> {
    if (writes.some((write) => this.#isBad(write))) {
      this.faults++
      throw new TypeError(FAULT)
    }
    return super.commit(writes)
  }

  #isBad(write: Write): boolean {
    return (
      write.type === 'turn' && write.runId === this.bad && !this.spared.includes(write.end.kind)
    )
  }
}

test.group('A run on whose writes our own code fails', (group) => {
  let store: FaultyStore
  let app: DurableApp
  group.each.setup(() => {
    store = new FaultyStore()
    // Nothing but what a test does makes a run due, and nothing of a stop is waited for until a time is over.
    const options = { leaseMs: HOUR, hangMs: 2 * HOUR, drainMs: HOUR }
    app = new DurableApp({ store, options })
    app.engine.register('work', '1', (ctx) => ctx.localStep('only', () => 'done'))
    return () => app.close()
  })

  const statusOf = async (runId: string) => {
    const run = await app.engine.getRun(runId)
    return run?.status
  }
  const errorLines = () => app.log.lines.filter(({ level }) => level === 'error')

  test('is blocked with the error, others have its slot, and a requeue completes it once the fault is gone', async ({
    assert,
  }) => {
    store.bad = 'bad'
    const worker = await app.work({ concurrency: 1 })
    await app.engine.start(WORK, null, 'bad')
    await until(async () => (await statusOf('bad')) === 'blocked')
    const blocked = await app.engine.getRun('bad')
    assert.equal(blocked?.error?.message, FAULT)
    await app.engine.start(WORK, null, 'good')
    const good = await app.engine.waitForRun('good')
    assert.equal(good.status, 'completed')
    await worker.stop()
    assert.equal(await statusOf('bad'), 'blocked')
    store.bad = null
    assert.isTrue(await app.engine.requeue('bad'))
    await app.work()
    const run = await app.engine.waitForRun('bad')
    assert.deepEqual([run.status, run.output], ['completed', 'done'])
    assert.isUndefined(run.error)
  })

  test('is offered again after pauses that grow with its age', async ({ assert }) => {
    store.bad = 'bad'
    await app.engine.start(WORK, null, 'bad')
    await app.work()
    await until(async () => (await statusOf('bad')) === 'blocked')
    await store.advanceClock(HOUR)
    await until(async () => store.faults === 2 && (await statusOf('bad')) === 'blocked')
    const dueIn = store.database.runs.get('bad')!.dueAt! - (await store.now())
    assert.isAbove(dueIn, 60_000)
  })

  test('and that cannot be blocked either holds no slot, is said to be held, and is handed back when its worker stops', async ({
    assert,
  }) => {
    store.bad = 'bad'
    store.spared = []
    const worker = await app.work({ concurrency: 1 })
    await app.engine.start(WORK, null, 'bad')
    await worker.whenIdle()
    await app.engine.start(WORK, null, 'good')
    const good = await app.engine.waitForRun('good')
    assert.equal(good.status, 'completed')
    const lines = errorLines().map(({ args }) => args)
    assert.lengthOf(lines, 2)
    assert.match(String(lines[1]?.[1]), /could not be blocked either/)
    assert.include(lines[1]?.[0], { runId: 'bad' })
    // One for what the turn wrote, and one for the block.
    assert.equal(store.faults, 2)
    await worker.stop()
    store.bad = null
    await app.work()
    const run = await app.engine.waitForRun('bad')
    assert.deepEqual([run.status, run.recoveryAttempts], ['completed', 0])
  })
})
