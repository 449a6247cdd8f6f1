import { test } from '@japa/runner'
import type { ChildOutcome } from '../../src/core/history.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { DurableApp } from '../support/durable_app.ts'
import { Deployments } from './deployments.ts'
import { PlayedTurn } from './played_turn.ts'

const completed = (index: number, output: string): ChildOutcome => ({
  ...{ index, runId: `run.child.0.${index}`, status: 'completed', output, error: null },
})

test.group('Outcomes of children', (group) => {
  let deployments: Deployments
  group.each.setup(() => {
    deployments = new Deployments()
    return () => deployments.close()
  })

  /** A turn whose body waits for two children that have ended as given. */
  async function endedAs(outcomes: ChildOutcome[], mode: 'failFast' | 'settled') {
    const played = new PlayedTurn(
      (ctx) => (mode === 'settled' ? ctx.allSettled('child', [1, 2]) : ctx.all('child', [1, 2])),
      { outcomes }
    )
    await played.settled()
    played.turn.deliver(
      outcomes.slice(0, 2).map(({ index, runId: childId }) => {
        const entry = { kind: 'child' as const, no: index + 1, receivedAt: 0, seq: 0, index }
        return { type: 'child', entry: { ...entry, childId, event: 'completed' } }
      })
    )
    for (;;) {
      const { state } = await played.settled()
      if (state.kind === 'ended') return state.outcome
    }
  }

  test('an output that cannot be read is a failure of that child, and of nothing else (P8)', async ({
    assert,
  }) => {
    const outcomes = [completed(0, '{"v":1}'), completed(1, '{"v":')]
    const settled = await endedAs(outcomes, 'settled')
    assert.containsSubset(settled, {
      status: 'completed',
      value: [
        { status: 'fulfilled', value: 1 },
        { status: 'rejected', reason: { code: 'E_UNREADABLE_PAYLOAD', runId: 'run.child.0.1' } },
      ],
    })
    const failFast = await endedAs(outcomes, 'failFast')
    assert.containsSubset(failFast, { status: 'failed', error: { code: 'E_UNREADABLE_PAYLOAD' } })
  })

  test('children that the code of this build would not have started are left out', async ({
    assert,
  }) => {
    const outcomes = [0, 1, 4].map((index) => completed(index, `{"v":${index}}`))
    assert.deepEqual(await endedAs(outcomes, 'failFast'), { status: 'completed', value: [0, 1] })
  })

  test('an id that another run has is the failure of no child; the run that has it is in the details', async ({
    assert,
  }) => {
    const caught: unknown[] = []
    await deployments.deploy({
      main: (ctx) => ctx.child('middle', null),
      middle: async (ctx) => {
        await ctx.startChild('bystander', null, 'order-1').catch((error) => caught.push(error))
        await ctx.child('bystander', null, 'order-1')
      },
      bystander: (ctx) => ctx.waitForSignal('go'),
    })
    await deployments.engine.start('bystander', null, 'order-1')
    const run = await deployments.start()
    const middle = await deployments.engine.getRun('run.child.0')
    const records = await deployments.records('run.child.0')
    const failure = { code: 'run_id_taken', details: { runId: 'order-1' } }
    assert.containsSubset(caught, [{ ...failure, runId: 'order-1' }])
    for (const error of [middle!.error, ...records.map((record) => record.error)]) {
      assert.containsSubset(error, failure)
      assert.notProperty(error, 'runId')
    }
    assert.containsSubset(run.error, { ...failure, runId: 'run.child.0' })
  })

  test('a run that waits for children is resumed though the store cannot be asked about them at first (P9)', async ({
    assert,
  }) => {
    const child = { child: (ctx: { sleep(ms: number): unknown }) => ctx.sleep(60_000) }
    await deployments.deploy({ main: (ctx) => ctx.child('child', null), ...child })
    await deployments.start()
    await deployments.close()

    let refusals = 1
    const store = new MemoryStore(deployments.database)
    const childStates = store.childStates.bind(store)
    store.childStates = async (parent) => {
      if (refusals-- > 0) throw new Error('The connection broke')
      return childStates(parent)
    }
    const app = new DurableApp({ store })
    app.engine.register('main', '1', (ctx) => ctx.child('child', null))
    app.engine.register('child', '1', child.child)
    const worker = await app.work()
    await app.engine.advanceClock(60_000)
    const run = await app.engine.waitForRun('run')
    await worker.whenIdle()
    assert.equal(run.status, 'completed')
    assert.deepEqual(await app.engine.findStranded(), [])
    await app.close()
  })
})
