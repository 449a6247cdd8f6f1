import { setImmediate as nextImmediate } from 'node:timers/promises'
import { test } from '@japa/runner'
import type { TurnState } from '../../src/replay/turn_state.ts'
import { PlayedTurn, recorded, waiting } from './played_turn.ts'

/** Position of a mismatch and what was asked there; null = the turn has none. */
function mismatchOf(state: TurnState): [number, string | null] | null {
  if (state.kind !== 'faulted' || state.fault.code !== 'non_determinism') return null
  return [state.fault.mismatch.seq, state.fault.mismatch.asked]
}

test.group('Mismatches', () => {
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

  const openChild = waiting({ seq: 0, kind: 'child', name: 'x', after: 0, target: 'run.child.0' })
  const otherRun = {
    seq: 0,
    asked: 'child "x" of run other',
    recorded: 'child "x" of run run.child.0',
  }

  const ends: Record<string, () => number> = {
    ends: () => 1,
    throws: () => {
      throw new Error('no')
    },
  }
  for (const [how, end] of Object.entries(ends))
    test(`a wait that is not one of its call is a mismatch, though the body ${how} without waiting for it (P3)`, async ({
      assert,
    }) => {
      const played = new PlayedTurn(
        async (ctx) => {
          void ctx.child('x', 1, 'other').catch(() => {})
          return end()
        },
        { waits: [openChild] }
      )
      const { state, children } = await played.settled()
      assert.deepEqual(state, {
        kind: 'faulted',
        fault: { code: 'non_determinism', mismatch: otherRun },
      })
      assert.deepEqual(children, [])
    })

  test('a turn that faults says so once, and begins nothing that was called beside it', async ({
    assert,
  }) => {
    const played = new PlayedTurn(
      (ctx) => Promise.all([ctx.child('x', 1, 'other'), ctx.localStep('a', () => 'a')]),
      { waits: [openChild] }
    )
    const { state } = await played.settled()
    await nextImmediate()
    assert.deepEqual(mismatchOf(state), [0, otherRun.asked])
    assert.equal(played.settlements, 1)
  })

  test('another id for a child that is started, whose start is not answered yet, is a mismatch (P3)', async ({
    assert,
  }) => {
    const wait = { seq: 0, kind: 'start_child', name: 'x', after: 0, target: 'one' } as const
    const played = new PlayedTurn((ctx) => ctx.startChild('x', 1, 'other'), {
      waits: [waiting(wait)],
    })
    const { state, children } = await played.settled()
    assert.deepEqual(mismatchOf(state), [0, 'start_child "x" of run other'])
    assert.deepEqual(children, [])
  })
})
