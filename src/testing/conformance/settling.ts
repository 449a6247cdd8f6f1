import assert from 'node:assert/strict'
import { handoffSeq } from '../../core/history.ts'
import type { NewRun } from '../../core/run.ts'
import type { Scenario } from './scenario.ts'
import type { Check } from './suite.ts'
import {
  BLOCK,
  CLAIM_KEY,
  claimKeyOf,
  COMPLETE,
  DIE,
  FAIL,
  newRun,
  parentLink,
  record,
  requeue,
  sleep,
  start,
  startLeased,
  SUSPEND,
  turn,
  waitForChild,
} from './writes.ts'

const UNWIND = { ...FAIL, kind: 'unwind' } as const
const FOLLOW = { ...FAIL, kind: 'follow', tag: 'onError:no' } as const
const HANDOFF = { ...waitForChild(handoffSeq(0), 'h'), kind: 'handoff' as const }

function handler(overrides: Partial<NewRun> = {}) {
  const parent = parentLink('r', { seq: handoffSeq(0), failFast: true })
  return { run: newRun('h', { workflow: 'handler', parent, ...overrides }), acknowledge: false }
}

/** A run that follows its handler run "h". */
async function following(db: Scenario) {
  const row = await db.running('r')
  await db.turn(row, { opened: [HANDOFF], children: [handler()], end: FOLLOW })
}

/** A run that has been suspended while it undoes its steps. */
async function unwinding(db: Scenario) {
  const row = await db.running('r')
  await db.turn(row, { records: [record(0)], end: UNWIND })
  const opened = [{ ...sleep(-1, 5_000), kind: 'compensation' as const }]
  await db.turn(row, { opened, end: { ...SUSPEND, dueIn: 5_000 } })
}

export function settlingChecks(check: Check) {
  check(
    'a run that unwinds goes on under its lease, and keeps its failure until it has ended',
    async (db) => {
      const row = await db.running('r')
      await db.turn(row, { records: [record(0)], end: UNWIND })
      const begun = await db.row('r')
      assert.deepEqual(
        [begun.status, begun.phase, begun.owner, begun.token, begun.errorCode, begun.error],
        ['running', 'unwinding', 'w1', row.token, FAIL.errorCode, FAIL.error]
      )
      const undo = record(-1, { kind: 'compensation', ordinal: null, after: 0 })
      await db.turn(row, { records: [undo] })
      await db.turn(row, { opened: [sleep(-2, 500)], end: { ...SUSPEND, dueIn: 500 } })
      assert.deepEqual(
        [await db.field('r', 'errorCode'), await db.field('r', 'phase')],
        [FAIL.errorCode, 'unwinding']
      )
      await db.store.advanceClock(500)
      const [claimed] = await db.claim()
      assert.equal(claimed?.phase, 'unwinding')
      const loaded = await db.load('r')
      assert.deepEqual([loaded.error, loaded.history.map(({ seq }) => seq)], [FAIL.error, [-1, 0]])
      const resident = await db.load('r', { resident: true })
      assert.equal(resident.error, null)
      await db.turn(claimed, { end: BLOCK })
      const blocked = await db.row('r')
      assert.deepEqual(
        [blocked.status, blocked.errorCode, blocked.error],
        ['blocked', FAIL.errorCode, FAIL.error]
      )
      await db.commit({ type: 'wake', runId: 'r' })
      const [unblocked] = await db.claim()
      assert.ok(unblocked)
      await db.turn(unblocked, { closed: [-2], end: FAIL })
      const ended = await db.row('r')
      assert.deepEqual(
        [ended.status, ended.errorCode, ended.error],
        ['failed', FAIL.errorCode, FAIL.error]
      )
    }
  )

  check('a fresh run has no failure to load', async (db) => {
    await db.running('r')
    const loaded = await db.load('r')
    assert.equal(loaded.error, null)
  })

  check(
    'following, tagging and starting the handler are one write; its end settles the run (OE-8)',
    async (db) => {
      await following(db)
      const row = await db.row('r')
      assert.deepEqual(
        [row.status, row.phase, row.owner, row.dueAt, row.handoffs, row.errorCode, row.tags],
        ['suspended', 'following', null, null, 1, FAIL.errorCode, ['onError:no']]
      )
      assert.deepEqual(await db.store.findStranded(), [])
      const link = await db.field('h', 'parent')
      assert.equal(link?.seq, handoffSeq(0))
      const [handling] = await db.claim({ claimKeys: [claimKeyOf('handler')] })
      assert.ok(handling)
      await db.turn(handling, { end: COMPLETE })
      const [claimed] = await db.claim()
      assert.equal(claimed?.phase, 'following')
      const loaded = await db.load('r')
      assert.equal(loaded.error, FAIL.error)
      const handoff = record(handoffSeq(0), { kind: 'handoff', ordinal: null, after: 0 })
      await db.turn(claimed, {
        records: [handoff],
        closed: [handoffSeq(0)],
        seenInbox: 1,
        end: COMPLETE,
      })
      const ended = await db.row('r')
      assert.deepEqual(
        [ended.status, ended.output, ended.error, ended.errorCode],
        ['completed', COMPLETE.output, null, null]
      )
      assert.deepEqual(ended.tags, ['onError:no'])
    }
  )

  check('a run that follows twice has its tag once', async (db) => {
    await following(db)
    const [handling] = await db.claim({ claimKeys: [claimKeyOf('handler')] })
    assert.ok(handling)
    await db.turn(handling, { end: FAIL })
    const [claimed] = await db.claim()
    assert.ok(claimed)
    await db.turn(claimed, { closed: [handoffSeq(0)], seenInbox: 1 })
    const second = { ...handler(), run: { ...handler().run, id: 'h2' } }
    await db.turn(claimed, { opened: [HANDOFF], children: [second], seenInbox: 1, end: FOLLOW })
    assert.deepEqual(
      [await db.field('r', 'tags'), await db.field('r', 'handoffs')],
      [['onError:no'], 2]
    )
  })

  check(
    'dying and storing the handler, due later, are one write; a wake brings it forward (DL-30)',
    async (db) => {
      const row = await db.running('r')
      const run = newRun('dlq:r', {
        workflow: 'handler',
        dueIn: 5_000,
        handles: { runId: 'r', as: 'dead_letter' },
      })
      const { news } = await db.commit(
        turn(row, { children: [{ run, acknowledge: false }], end: DIE })
      )
      assert.deepEqual([[...news.ended], [...news.due], news.dueIn], [['r'], [], 5_000])
      const dead = await db.row('r')
      assert.deepEqual([dead.status, dead.owner, dead.error], ['dead', null, DIE.error])
      const stored = await db.row('dlq:r')
      assert.deepEqual(
        [stored.status, stored.handles, stored.parent],
        ['pending', run.handles, null]
      )
      assert.ok(!(await db.isDue('dlq:r')))
      const answer = await db.commit({ type: 'wake', runId: 'dlq:r' })
      assert.deepEqual(answer.answers, [{ type: 'woken', done: true }])
      assert.deepEqual([...answer.news.due], [claimKeyOf('handler')])
      assert.deepEqual(await db.claimedIds({ claimKeys: [claimKeyOf('handler')] }), ['dlq:r'])
    }
  )

  check('a handler id that is taken does not keep a run from dying (DL-24)', async (db) => {
    const taken = await db.pending('dlq:r')
    const row = await db.running('r')
    const children = [{ run: newRun('dlq:r', { workflow: 'handler' }), acknowledge: false }]
    await db.turn(row, { children, end: DIE })
    assert.equal(await db.field('r', 'status'), 'dead')
    assert.equal(await db.field('dlq:r', 'workflow'), taken.workflow)
  })

  check('a wake makes what waits due, and says when there is nothing to wake', async (db) => {
    await db.pending('later', { dueIn: 5_000 })
    await db.waiting('waiting', 'go')
    await db.turn(await db.running('blocked'), { end: { ...BLOCK, retryIn: 5_000 } })
    await db.running('running')
    await db.turn(await db.running('over'), { end: COMPLETE })
    await db.pending('due', { workflow: 'other' })
    const ids = ['later', 'waiting', 'blocked', 'running', 'over', 'due', 'nobody']
    const { answers } = await db.commit(...ids.map((runId) => ({ type: 'wake' as const, runId })))
    assert.deepEqual(
      answers.map((answer) => answer.type === 'woken' && answer.done),
      [true, true, true, false, false, false, false]
    )
    const claimed = await db.claimedIds()
    assert.deepEqual(claimed.sort(), ['blocked', 'later', 'waiting'])
  })

  check('a run that is to start later is not due before, and is told of', async (db) => {
    const { news } = await db.commit(start('r', { dueIn: 400 }), start('s', { dueIn: 900 }))
    assert.deepEqual([[...news.due], news.dueIn], [[], 400])
    assert.deepEqual(await db.claimedIds(), [])
    const dueIn = await db.store.nextDueIn([CLAIM_KEY])
    assert.ok(dueIn !== null && dueIn > 0 && dueIn <= 400)
    await db.store.advanceClock(400)
    assert.deepEqual(await db.claimedIds(), ['r'])
  })

  check(
    'finds live runs whose execution time is over, those that are over longest first',
    async (db) => {
      await db.commit(start('a', { timeoutMs: 3_000 }), startLeased('b', { timeoutMs: 1_000 }))
      await db.commit(start('c', { timeoutMs: 2_000, workflow: 'unknown' }))
      await db.commit(start('never'), start('later', { timeoutMs: 90_000 }))
      await db.turn(await db.running('over', { timeoutMs: 1_000 }), { end: COMPLETE })
      const unwind = { kind: 'unwind', error: '{}', errorCode: 'x' } as const
      await db.turn(await db.running('undoing', { timeoutMs: 1_000 }), { end: unwind })
      assert.deepEqual(await db.store.findOverdue(10), [])
      await db.store.advanceClock(5_000)
      assert.deepEqual(await db.store.findOverdue(10), ['b', 'c', 'a'])
      assert.deepEqual(await db.store.findOverdue(2), ['b', 'c'])
      const { deadlineAt, createdAt } = await db.row('a')
      assert.equal(deadlineAt, createdAt + 3_000)
    }
  )

  check('a requeued run has its execution time anew', async (db) => {
    const row = await db.running('r', { timeoutMs: 1_000 })
    await db.turn(row, { end: FAIL })
    await db.store.advanceClock(5_000)
    assert.deepEqual(await db.store.findOverdue(10), [])
    await db.commit(requeue(row, { timeoutMs: 1_000 }))
    assert.deepEqual(await db.store.findOverdue(10), [])
    const { deadlineAt, updatedAt } = await db.row('r')
    assert.equal(deadlineAt, updatedAt + 1_000)
    await db.store.advanceClock(1_000)
    assert.deepEqual(await db.store.findOverdue(10), ['r'])
  })

  check('standings tell the token, which a cancel raises, and that a run unwinds', async (db) => {
    const { claimKey, status, phase, token, errorCode } = await db.running('r')
    const standing = { runId: 'r', claimKey, status, phase, token, errorCode }
    assert.deepEqual(await db.store.statusesOf(['r', 'nobody']), [standing])
    const cancel = { type: 'cancel', runId: 'r', error: '{}', errorCode: 'c' } as const
    await db.commit({ ...cancel, compensate: true })
    const unwinds = { status: 'suspended', phase: 'unwinding', token: token + 1, errorCode: 'c' }
    assert.deepEqual(await db.store.statusesOf(['r']), [{ ...standing, ...unwinds }])
    await db.commit({ ...cancel, compensate: false })
    assert.deepEqual(await db.store.statusesOf(['r']), [
      { ...standing, ...unwinds, status: 'cancelled', token: token + 2 },
    ])
  })

  check(
    'a run that unwinds or follows is found stranded when nothing will wake it (P4)',
    async (db) => {
      await unwinding(db)
      assert.deepEqual(await db.store.findStranded(), [])
      await db.corrupt.forgetDue('r')
      assert.deepEqual(await db.store.findStranded(), [{ runId: 'r', reason: 'no_wake' }])
      await db.commit({ type: 'wake', runId: 'r' })
      const [claimed] = await db.claim()
      assert.ok(claimed)
      await db.turn(claimed, {
        closed: [-1],
        opened: [HANDOFF],
        children: [handler()],
        end: FOLLOW,
      })
      assert.deepEqual(await db.store.findStranded(), [])
      const [handling] = await db.claim({ claimKeys: [claimKeyOf('handler')] })
      assert.ok(handling)
      await db.turn(handling, { end: COMPLETE })
      assert.deepEqual(await db.store.findStranded(), [])
      await db.corrupt.forgetDue('r')
      assert.deepEqual(await db.store.findStranded(), [{ runId: 'r', reason: 'unread_inbox' }])
      await db.corrupt.dropInbox('r')
      assert.deepEqual(await db.store.findStranded(), [{ runId: 'r', reason: 'no_wake' }])
    },
    { strands: true }
  )
}
