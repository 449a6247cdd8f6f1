import { test } from '@japa/runner'
import type { StepOutcome } from '../../src/core/dispatch.ts'
import type { ChildOutcome, ResultEntry, Wait } from '../../src/core/history.ts'
import { encode } from '../../src/core/payload.ts'
import { encodeError, serializeError } from '../../src/core/serialized_error.ts'
import type { TurnWants } from '../../src/replay/turn.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { PlayedTurn, waiting } from '../replay/played_turn.ts'

const NOW = 1_000_000
const RECONCILE_MS = 60_000
const TOKEN = 4
const DONE: StepOutcome = { status: 'completed', output: encode('done') }
const FAILED: StepOutcome = {
  status: 'failed',
  error: encodeError(serializeError(new Error('no'))),
}

/** A turn of a process that knows no step. */
function play(
  body: (ctx: WorkflowCtx) => unknown,
  past: { waits?: Wait[]; outcomes?: Promise<ChildOutcome[]> } = {}
): PlayedTurn {
  let ids = 0
  const dispatching = {
    ...{ reconcileMs: RECONCILE_MS, redispatchMax: 3 },
    token: () => TOKEN,
    newId: () => `d${++ids}`,
    jitter: () => 0,
    isKnown: () => false,
    optionsOf: () => ({}),
  }
  return new PlayedTurn(body, { ...past, dispatching })
}

function result(outcome: StepOutcome, overrides: Partial<ResultEntry> = {}) {
  const entry: ResultEntry = {
    ...{ kind: 'result', no: 1, receivedAt: NOW, seq: 0, generation: TOKEN, attempt: 1 },
    ...{ dispatchId: 'd1', outcome },
    ...overrides,
  }
  return { type: 'result' as const, entry }
}

/** The wait that a turn has opened, as it is stored. */
function stored({ opened }: TurnWants, dueAt: number): Wait {
  const { dueIn, ...wait } = opened[0]!
  return { ...wait, dueAt, openedAt: NOW }
}

/** A turn whose first message is out and whose wait is due at `NOW + RECONCILE_MS`. */
async function sent(body: (ctx: WorkflowCtx) => unknown = (ctx) => ctx.step('work', null)) {
  const played = play(body)
  const wants = await played.settled()
  played.turn.committed(wants.opened, NOW)
  return { played, wants }
}

test.group('Turns with dispatched steps', () => {
  test('a wait with a deadline and a message are one want', async ({ assert }) => {
    const { wants } = await sent()
    const dispatch = {
      ...{ generation: TOKEN, attempt: 1, id: 'd1', redispatches: 0, silenceMs: RECONCILE_MS },
    }
    assert.containSubset(wants.opened, [{ seq: 0, kind: 'step', dueIn: RECONCILE_MS, dispatch }])
    assert.containSubset(wants.orders, [{ seq: 0, name: 'work', dispatchId: 'd1', attempt: 1 }])
    assert.deepEqual(wants.state, {
      kind: 'parked',
      terms: { dueAt: null, dueIn: RECONCILE_MS, needs: null },
    })
  })

  test('a message is not sent for a step whose result is taken by the same write', async ({
    assert,
  }) => {
    const { played } = await sent()
    played.turn.elapse(NOW + RECONCILE_MS)
    await new Promise((resolve) => setImmediate(resolve))
    played.turn.deliver([result(DONE)])
    const wants = await played.settled()
    assert.deepEqual([wants.orders, wants.opened, wants.closed], [[], [], [0]])
    assert.equal(wants.records[0]?.output, DONE.output)
  })

  test('a message is not sent for an attempt that has failed meanwhile', async ({ assert }) => {
    const { played } = await sent()
    played.turn.elapse(NOW + RECONCILE_MS)
    await new Promise((resolve) => setImmediate(resolve))
    played.turn.deliver([result(FAILED)])
    const wants = await played.settled()
    assert.deepEqual(wants.orders, [])
    assert.containSubset(wants.opened, [{ attempts: 1, error: FAILED.error, dueIn: 125 }])
  })

  test('a deadline that had come before the attempt failed does not cut the back-off short', async ({
    assert,
  }) => {
    const outcomes = Promise.withResolvers<ChildOutcome[]>()
    const played = play((ctx) => Promise.all([ctx.step('work', null), ctx.child('child', null)]), {
      outcomes: outcomes.promise,
    })
    const { opened, children } = await played.settled()
    const childId = children[0]!.run.id
    played.turn.committed(opened, NOW)
    const ended = { kind: 'child', no: 1, receivedAt: NOW, seq: 1, index: 0, childId } as const
    played.turn.deliver([{ type: 'child', entry: { ...ended, event: 'completed' } }])
    played.turn.deliver([result(FAILED, { no: 2 })])
    await played.settled()
    played.turn.elapse(NOW + RECONCILE_MS)
    await played.settled()
    outcomes.resolve([
      { index: 0, runId: childId, status: 'completed', output: encode(1), error: null },
    ])
    const wants = await played.settled()
    assert.deepEqual(wants.orders, [])
    assert.containSubset(wants.opened, [{ seq: 0, attempts: 1, dueIn: 125 }])
  })

  test('an answer to a write does not set the time of a wait that is replaced by the next', async ({
    assert,
  }) => {
    const played = play((ctx) => ctx.step('work', null))
    const first = await played.settled()
    played.turn.deliver([result(FAILED)])
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    played.turn.committed(first.opened, NOW)
    assert.isNull(played.turn.nextDueAt)
    const second = await played.settled()
    played.turn.committed(second.opened, NOW)
    assert.equal(played.turn.nextDueAt, NOW + 125)
  })

  test('a stored wait puts off the deadline of its own message only, and never brings it forward', async ({
    assert,
  }) => {
    const { played, wants } = await sent()
    const deadline = NOW + RECONCILE_MS
    const later = stored(wants, deadline + 5_000)
    const other = { ...later, dispatch: { ...later.dispatch!, id: 'other' } }
    played.turn.elapse(NOW, [other])
    assert.equal(played.turn.nextDueAt, deadline)
    played.turn.elapse(NOW, [stored(wants, deadline - 5_000)])
    assert.equal(played.turn.nextDueAt, deadline)
    played.turn.elapse(deadline, [later])
    assert.equal(played.turn.nextDueAt, deadline + 5_000)
    const { orders, state } = await played.settled()
    assert.deepEqual([orders, state.kind], [[], 'parked'])
  })

  test('a wait that stands goes on from its dispatch, its attempts and its generation', async ({
    assert,
  }) => {
    const dispatch = {
      ...{ generation: 2, attempt: 3, id: 'd9', redispatches: 1, silenceMs: RECONCILE_MS },
    }
    const wait = waiting({
      ...{ seq: 0, kind: 'step', name: 'work', after: 0 },
      ...{ attempts: 2, error: FAILED.error, dueAt: NOW, dispatch },
    })
    const played = play((ctx) => ctx.step('work', null), { waits: [wait] })
    const found = await played.settled()
    assert.deepEqual([found.orders, found.opened], [[], []])
    played.turn.elapse(NOW)
    const again = await played.settled()
    assert.containSubset(again.orders, [{ generation: 2, attempt: 3, dispatchId: 'd1' }])
    const redispatched = { ...dispatch, id: 'd1', redispatches: 2 }
    const expected = { attempts: 2, error: FAILED.error, dispatch: redispatched }
    assert.containSubset(again.opened, [expected])
  })

  test('between two attempts a wait that stands is followed by the next one at its time', async ({
    assert,
  }) => {
    const dispatch = {
      ...{ generation: 2, attempt: 1, id: 'd9', redispatches: 3, silenceMs: RECONCILE_MS },
    }
    const place = { seq: 0, kind: 'step', name: 'work', after: 0 } as const
    const wait = waiting({ ...place, attempts: 1, error: FAILED.error, dueAt: NOW, dispatch })
    const played = play((ctx) => ctx.step('work', null), { waits: [wait] })
    await played.settled()
    played.turn.elapse(NOW)
    const { orders, opened } = await played.settled()
    assert.containSubset(orders, [{ generation: 2, attempt: 2 }])
    assert.deepEqual(opened[0]?.dispatch, { ...dispatch, attempt: 2, id: 'd1', redispatches: 0 })
  })

  test('a step that failed where it was known is sent from where it is not, at the time of its next attempt', async ({
    assert,
  }) => {
    const place = { seq: 0, kind: 'step', name: 'work', after: 0 } as const
    const later = waiting({ ...place, attempts: 1, error: FAILED.error, dueAt: NOW + 5 })
    const played = play((ctx) => ctx.step('work', null), { waits: [later] })
    const found = await played.settled()
    assert.deepEqual(found.orders, [])
    played.turn.elapse(NOW + 5)
    const { orders } = await played.settled()
    assert.containSubset(orders, [{ generation: TOKEN, attempt: 2 }])
    const now = play((ctx) => ctx.step('work', null), { waits: [waiting(place)] })
    const wants = await now.settled()
    assert.containSubset(wants.orders, [{ generation: TOKEN, attempt: 1 }])
  })

  for (const { what, overrides } of [
    { what: 'another generation', overrides: { generation: TOKEN - 1 } },
    { what: 'an attempt that was not made yet', overrides: { attempt: 2 } },
    { what: 'another position', overrides: { seq: 3 } },
  ])
    test(`a result of ${what} is taken and changes nothing`, async ({ assert }) => {
      const { played } = await sent()
      played.turn.deliver([result(DONE, overrides)])
      const { records, opened, closed, seenInbox, state } = await played.settled()
      assert.deepEqual([records, opened, closed, seenInbox], [[], [], [], 1])
      assert.equal(state.kind, 'parked')
    })

  test('a step that is in flight when the body ends is recorded abandoned, one between two attempts is not', async ({
    assert,
  }) => {
    const { played } = await sent((ctx) =>
      Promise.race([ctx.step('work', null), ctx.step('other', null), ctx.sleep(1)])
    )
    played.turn.deliver([result(FAILED, { seq: 1, dispatchId: 'd2' })])
    await played.settled()
    played.turn.elapse(NOW + 1)
    const { records, state } = await played.settled()
    assert.equal(state.kind, 'ended')
    assert.deepEqual(
      records.map(({ name, status }) => ({ name, status })),
      [
        { name: 'sleep', status: 'completed' },
        { name: 'work', status: 'abandoned' },
      ]
    )
  })

  test('a step that the body asks for in its last window, and does not wait for, is not sent', async ({
    assert,
  }) => {
    const played = play(async (ctx) => {
      await ctx.localStep('first', () => 1)
      void ctx.step('work', null).catch(() => {})
      return 'over'
    })
    await played.settled()
    played.turn.arrive(0, DONE, 1)
    const { orders, opened, state } = await played.settled()
    assert.deepEqual([orders, opened, state.kind], [[], [], 'ended'])
  })
})
