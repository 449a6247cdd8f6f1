import { setImmediate as nextImmediate, setTimeout as delay } from 'node:timers/promises'
import { test } from '@japa/runner'
import { encode } from '../../src/core/payload.ts'
import { OperationPromise } from '../../src/replay/operation.ts'
import type { TurnState } from '../../src/replay/turn_state.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { Deployments } from './deployments.ts'
import { PlayedTurn, recorded, waiting } from './played_turn.ts'

const ok = (value: unknown) => ({ status: 'completed' as const, output: encode(value) })

/** Position of a mismatch and what was asked there; null = the turn has none. */
function mismatchOf(state: TurnState): [number, string | null] | null {
  if (state.kind !== 'faulted' || state.fault.code !== 'non_determinism') return null
  return [state.fault.mismatch.seq, state.fault.mismatch.asked]
}

test.group('Rules of a turn', () => {
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

  test('a mismatch reaches nothing in the body: it cannot be caught (P3)', async ({ assert }) => {
    const seen: unknown[] = []
    const played = new PlayedTurn(
      async (ctx) => {
        try {
          seen.push(await ctx.localStep('renamed', () => ''))
        } catch (error) {
          seen.push(error)
        } finally {
          seen.push('went on')
        }
      },
      { history: [recorded({ seq: 0, name: 'name', after: 0 })] }
    )
    const { state, ...wants } = await played.settled()
    await nextImmediate()
    assert.deepEqual(seen, [])
    assert.deepEqual(state, {
      kind: 'faulted',
      fault: {
        code: 'non_determinism',
        mismatch: {
          seq: 0,
          asked: 'local_step "renamed" after 0 deliveries',
          recorded: 'local_step "name" after 0 deliveries',
        },
      },
    })
    const { seenInbox, ...lists } = wants
    assert.equal(seenInbox, 0)
    assert.deepEqual(Object.values(lists).flat(), [])
  })

  test('a turn that faults wants nothing written of what the body asked for before (P3)', async ({
    assert,
  }) => {
    const played = new PlayedTurn(
      async (ctx) => {
        ctx.now()
        await ctx.localStep('renamed', () => '')
      },
      { waits: [waiting({ seq: 1, kind: 'sleep', name: 'sleep', after: 0 })] }
    )
    const { state, records } = await played.settled()
    assert.equal(state.kind, 'faulted')
    assert.deepEqual(records, [])
  })

  test('a recorded operation that is not called by the time its delivery is due is a mismatch', async ({
    assert,
  }) => {
    const played = new PlayedTurn(
      async (ctx) => {
        await ctx.localStep('a', () => 'a')
        await ctx.sleep('1m')
      },
      {
        history: [
          recorded({ seq: 0, name: 'a', after: 0, ordinal: 1 }),
          recorded({ seq: 1, name: 'b', after: 0, ordinal: 0 }),
        ],
      }
    )
    const { state } = await played.settled()
    assert.deepEqual(mismatchOf(state), [1, null])
  })

  test('an open operation that is not called again is a mismatch, though nothing of it is to be delivered', async ({
    assert,
  }) => {
    const played = new PlayedTurn((ctx) => ctx.localStep('a', () => 'a'), {
      waits: [waiting({ seq: 1, kind: 'sleep', name: 'sleep', after: 0, dueAt: 1 })],
    })
    const { state, starts } = await played.settled()
    assert.deepEqual(mismatchOf(state), [1, null])
    assert.deepEqual(starts, [])
  })

  test('a body that ends before everything recorded was asked for is a mismatch', async ({
    assert,
  }) => {
    const history = [
      recorded({ seq: 0, name: 'a', after: 0 }),
      recorded({ seq: 1, name: 'b', after: 1 }),
    ]
    const played = new PlayedTurn((ctx) => ctx.localStep('a', () => 'a'), { history })
    const { state } = await played.settled()
    assert.deepEqual(mismatchOf(state), [1, null])
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

  test('what is derived from the promise of an operation is an ordinary promise', async ({
    assert,
  }) => {
    const { promise } = OperationPromise.withResolvers<void>()
    assert.isFalse(promise.then(() => {}) instanceof OperationPromise)
    assert.isFalse(promise.catch(() => {}) instanceof OperationPromise)
    assert.isFalse(promise.finally(() => {}) instanceof OperationPromise)
  })

  test('a forgotten await is found, though the package itself keeps its rejection from being unhandled', async ({
    assert,
  }) => {
    const played = new PlayedTurn((ctx) => {
      void ctx.localStep('forgotten', () => 1)
    })
    const { state } = await played.settled()
    assert.deepEqual(state, {
      kind: 'ended',
      outcome: { status: 'not_awaited', seq: 0, name: 'forgotten' },
    })
  })

  test('an operation that was listened to counts as awaited', async ({ assert }) => {
    const played = new PlayedTurn((ctx) => {
      void ctx.localStep('listened', () => 1).then(() => {})
    })
    const { state } = await played.settled()
    assert.deepInclude(state, { kind: 'ended', outcome: { status: 'completed', value: undefined } })
  })

  test('values drawn without an operation between them differ, and are the same at every replay', async ({
    assert,
  }) => {
    const draw = async () => {
      const seen: unknown[] = []
      const played = new PlayedTurn((ctx) => {
        seen.push(ctx.random(), ctx.random(), ctx.uuid(), ctx.uuid())
      })
      await played.settled()
      return seen
    }
    const first = await draw()
    assert.equal(new Set(first).size, 4)
    assert.deepEqual(await draw(), first)
  })

  test('entries of the inbox that went to somebody else count as taken', async ({ assert }) => {
    const played = new PlayedTurn((ctx) => ctx.sleep('1m'))
    await played.settled()
    played.turn.deliver([], 2)
    const { seenInbox, state } = await played.settled()
    assert.equal(seenInbox, 2)
    assert.equal(state.kind, 'parked')
  })
})

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
