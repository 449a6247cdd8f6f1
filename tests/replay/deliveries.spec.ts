import { setImmediate as nextImmediate, setTimeout as delay } from 'node:timers/promises'
import { test } from '@japa/runner'
import { encode } from '../../src/core/payload.ts'
import type { SignalEntry } from '../../src/core/history.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { until } from '../support/until.ts'
import { Deployments } from './deployments.ts'
import { PlayedTurn, recorded } from './played_turn.ts'

const ok = (value: unknown) => ({ status: 'completed' as const, output: encode(value) })

test.group('Deliveries', () => {
  test('what has arrived together reaches the body one by one, each behind all that the one before it caused (P3)', async ({
    assert,
  }) => {
    const seen: string[] = []
    const played = new PlayedTurn((ctx) => {
      const watch = async (name: string) => {
        await ctx.localStep(name, () => name)
        for (let tick = 0; tick < 20; tick++) await null
        seen.push(name)
      }
      const first = async () => {
        await watch('a')
        seen.push('behind a')
      }
      return Promise.all([first(), watch('b')])
    })
    const { starts } = await played.settled()
    assert.deepEqual(
      starts.map(({ seq }) => seq),
      [0, 1]
    )
    played.turn.arrive(0, ok('a'), 1)
    played.turn.arrive(1, ok('b'), 1)
    await played.settled()
    assert.deepEqual(seen, ['a', 'behind a', 'b'])
  })

  test('a call notes how many deliveries came before it (P3)', async ({ assert }) => {
    const played = new PlayedTurn(async (ctx) => {
      await ctx.localStep('first', () => 1)
      await ctx.localStep('second', () => 2)
    })
    await played.settled()
    played.turn.arrive(0, ok(1), 1)
    const { records } = await played.settled()
    played.turn.arrive(1, ok(2), 1)
    const last = await played.settled()
    assert.deepEqual(
      [...records, ...last.records].map(({ after, ordinal }) => ({ after, ordinal })),
      [
        { after: 0, ordinal: 0 },
        { after: 1, ordinal: 1 },
      ]
    )
  })

  test('a call that comes later or sooner than recorded, in deliveries, is a mismatch (P3)', async ({
    assert,
  }) => {
    const bodies = {
      later: async (ctx: WorkflowCtx) => {
        await ctx.localStep('a', () => 'a')
        await ctx.localStep('b', () => 'b')
      },
      sooner: (ctx: WorkflowCtx) =>
        Promise.all([ctx.localStep('a', () => 'a'), ctx.localStep('b', () => 'b')]),
    }
    const recordedAfter = { later: 0, sooner: 1 }
    for (const way of ['later', 'sooner'] as const) {
      const history = [
        recorded({ seq: 0, name: 'a', after: 0 }),
        recorded({ seq: 1, name: 'b', after: recordedAfter[way] }),
      ]
      const { state } = await new PlayedTurn(bodies[way], { history }).settled()
      assert.equal(state.kind, 'faulted', way)
    }
  })

  test('what is recorded is delivered in the order of its ordinals, not of its calls (P3)', async ({
    assert,
  }) => {
    const history = [
      recorded({ seq: 0, name: 'slow', after: 0, ordinal: 1 }),
      recorded({ seq: 1, name: 'fast', after: 0, ordinal: 0 }),
    ]
    const order: string[] = []
    const played = new PlayedTurn(
      async (ctx) => {
        const note = async (name: string) => order.push(await ctx.localStep(name, () => name))
        await Promise.all([note('slow'), note('fast')])
      },
      { history }
    )
    const { state } = await played.settled()
    assert.equal(state.kind, 'ended')
    assert.deepEqual(order, ['fast', 'slow'])
  })

  test('a step that is not recorded starts only when everything recorded has been delivered: never before a mismatch is found (P2)', async ({
    assert,
  }) => {
    const started: string[] = []
    const played = new PlayedTurn(
      async (ctx) => {
        void ctx.localStep('charge', () => '').then(() => {})
        await ctx.localStep('old', () => '')
        await ctx.localStep('renamed', () => '')
      },
      {
        history: [
          recorded({ seq: 1, name: 'old', after: 0, ordinal: 0 }),
          recorded({ seq: 2, name: 'name', after: 1, ordinal: 1 }),
        ],
      }
    )
    for (;;) {
      const { starts, state } = await played.settled()
      started.push(...starts.map(({ name }) => name))
      if (state.kind === 'faulted') break
    }
    assert.deepEqual(started, [])
  })

  test('an operation called after the body has ended, in its last window, never settles and does nothing', async ({
    assert,
  }) => {
    const seen: string[] = []
    const played = new PlayedTurn((ctx) => {
      const late = async () => {
        for (let tick = 0; tick < 50; tick++) await null
        seen.push('called')
        await ctx.sendSignal('late')
        seen.push('settled')
      }
      void late()
    })
    const { state, signals, records } = await played.settled()
    await nextImmediate()
    assert.deepEqual(state, { kind: 'ended', outcome: { status: 'completed', value: undefined } })
    assert.deepEqual({ signals, records, seen }, { signals: [], records: [], seen: ['called'] })
  })

  test('a window stays open for chains of microtasks of any length', async ({ assert }) => {
    const played = new PlayedTurn(async (ctx) => {
      for (let tick = 0; tick < 5_000; tick++) await null
      await ctx.sleep('1m')
    })
    const { state } = await played.settled()
    assert.equal(state.kind, 'parked')
  })

  test('entries of the inbox that went to somebody else count as taken', async ({ assert }) => {
    const played = new PlayedTurn((ctx) => ctx.sleep('1m'))
    await played.settled()
    played.turn.deliver([], 2)
    const { seenInbox, state } = await played.settled()
    assert.equal(seenInbox, 2)
    assert.equal(state.kind, 'parked')
  })

  test('what comes when the body has ended, and its end has not been taken yet, changes nothing of it (P1)', async ({
    assert,
  }) => {
    const played = new PlayedTurn((ctx) =>
      Promise.race([ctx.localStep('slow', () => 'slow'), ctx.waitForSignal('go')])
    )
    const { starts, opened } = await played.settled()
    assert.deepEqual([starts.length, opened.length], [1, 1])
    played.turn.deliver([{ type: 'signal', entry: sent(1) }])
    await until(() => played.turn.isOver && !played.turn.isBusy)
    played.turn.deliver([{ type: 'signal', entry: sent(2) }])
    played.turn.elapse(1)
    await until(() => !played.turn.isBusy)
    const { records, seenInbox, state } = await played.settled()
    assert.deepEqual(
      records.map(({ seq, status }) => [seq, status]),
      [
        [1, 'completed'],
        [0, 'abandoned'],
      ]
    )
    assert.deepEqual([state.kind, seenInbox], ['ended', 1])
  })
})

/** A signal for the wait at position 1. */
function sent(no: number): SignalEntry {
  return {
    ...{ kind: 'signal', no, receivedAt: 0, seq: 1, signalId: `s${no}` },
    ...{ token: 'go', payload: encode(no) },
  }
}

test.group('Windows of the engine', (group) => {
  let deployments: Deployments
  group.each.setup(() => {
    deployments = new Deployments()
    return () => deployments.close()
  })

  for (const [what, wait] of [
    ['an immediate', () => nextImmediate()],
    ['a timer', () => delay(1)],
    ['two immediates', () => nextImmediate().then(() => nextImmediate())],
  ] as const)
    test(`an operation after ${what} beside a sleep is a foreign await: it is not run`, async ({
      assert,
    }) => {
      const done: string[] = []
      const called = Promise.withResolvers<void>()
      await deployments.deploy(
        {
          main: async (ctx) => {
            const charge = async () => {
              await wait()
              called.resolve()
              await ctx.localStep('charge', () => void done.push('charge'))
            }
            await Promise.all([ctx.sleep('1m'), charge()])
          },
        },
        { nonDeterminism: 'fail' }
      )
      await deployments.engine.start('main', undefined, 'run')
      await called.promise
      await deployments.rest()
      const run = await deployments.advance(60_000)
      assert.equal(run.status, 'failed')
      assert.equal(run.error?.code, 'foreign_await')
      assert.deepEqual(done, [])
    })
})
