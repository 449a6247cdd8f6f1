import assert from 'node:assert/strict'
import type { StrandedReason } from '../../contracts/store.ts'
import type { Scenario } from './scenario.ts'
import type { Check } from './suite.ts'
import {
  BLOCK,
  COMPLETE,
  dispatched,
  FAIL,
  newRun,
  parentLink,
  RELEASE,
  result,
  signal,
  sleep,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForAll,
  waitForChild,
  waitForSignal,
} from './writes.ts'

async function expectStranded(db: Scenario, expected: Record<string, StrandedReason>) {
  const found = await db.store.findStranded()
  const reasons = Object.fromEntries(found.map(({ runId, reason }) => [runId, reason]))
  assert.deepEqual(reasons, expected)
  assert.equal(found.length, Object.keys(expected).length)
}

async function sleeping(db: Scenario, id: string) {
  const end = { ...SUSPEND, dueIn: 5_000 }
  await db.turn(await db.running(id), { opened: [sleep(0, 5_000)], end })
}

/** A parent that waits for one child which is pending. */
async function parentOf(db: Scenario, childId: string) {
  const id = `parent of ${childId}`
  const children = [{ run: newRun(childId, { parent: parentLink(id) }), acknowledge: false }]
  const opened = [waitForChild(0, childId)]
  await db.turn(await db.running(id), { opened, children, end: suspendOnEnds(1) })
}

export function strandingChecks(check: Check) {
  check('finds nothing in healthy states (P4)', async (db) => {
    await db.pending('pending')
    await db.running('running')
    await sleeping(db, 'sleeping')
    await db.waiting('waiting', 'go')
    await db.waiting('woken', 'stop')
    await db.commit(signal('s1', 'stop'))
    await parentOf(db, 'child')
    for (const end of [COMPLETE, FAIL, RELEASE, BLOCK])
      await db.turn(await db.running(end.kind), { end })
    const [first] = await db.family('waits for the others', { count: 3 })
    assert.ok(first)
    await db.turn(first, { end: FAIL })
    const [early] = await db.family('woken early', { count: 2, link: { failFast: true } })
    assert.ok(early)
    await db.turn(early, { end: FAIL })
    const sent = { opened: [dispatched(0)], end: { ...SUSPEND, dueIn: 60_000 } }
    await db.turn(await db.running('sent'), sent)
    await db.turn(await db.running('answered'), sent)
    await db.commit(result('answered'))
    const both = await db.running('signal or timeout')
    const opened = [{ ...waitForSignal(0, 'maybe'), dueIn: 5_000 }]
    await db.turn(both, { opened, end: { ...SUSPEND, dueIn: 5_000 } })
    await expectStranded(db, {})
    await db.store.advanceClock(30_000)
    await expectStranded(db, {})
    await db.store.recoverExpired()
    await expectStranded(db, {})
  })

  check(
    'finds a run whose wait has no row (P4)',
    async (db) => {
      await db.waiting('r1', 'go')
      await db.waiting('r2', 'go')
      await db.corrupt.dropWait('r1', 0)
      await parentOf(db, 'child')
      await db.corrupt.dropWait('parent of child', 0)
      await expectStranded(db, { 'r1': 'no_wake', 'parent of child': 'no_wake' })
    },
    { strands: true }
  )

  check(
    'finds a sleeper whose wake was lost, alone and beside a signal (P4)',
    async (db) => {
      await sleeping(db, 'r1')
      await sleeping(db, 'healthy')
      const opened = [waitForSignal(0, 'go'), sleep(1, 5_000)]
      const end = { ...SUSPEND, dueIn: 5_000 }
      await db.turn(await db.running('r2'), { opened, end })
      for (const id of ['r1', 'r2']) await db.corrupt.forgetDue(id)
      await expectStranded(db, { r1: 'no_wake', r2: 'no_wake' })
    },
    { strands: true }
  )

  check(
    'finds a run that does not read its inbox (P4)',
    async (db) => {
      await db.waiting('r1', 'go')
      await db.commit(signal('s1', 'go'))
      const [child] = await db.family('parent', { count: 1 })
      const [failed] = await db.family('eager', { count: 2, link: { failFast: true } })
      assert.ok(child && failed)
      await db.commit(turn(child, { end: COMPLETE }), turn(failed, { end: FAIL }))
      await expectStranded(db, {})
      for (const id of ['r1', 'parent', 'eager']) await db.corrupt.forgetDue(id)
      await expectStranded(db, {
        r1: 'unread_inbox',
        parent: 'unread_inbox',
        eager: 'unread_inbox',
      })
    },
    { strands: true }
  )

  check(
    'finds a run whose step was sent and that has no deadline, and one that does not read its result (P4)',
    async (db) => {
      for (const id of ['r1', 'r2', 'healthy']) {
        const sent = { opened: [dispatched(0)], end: { ...suspendOnEnds(3), dueIn: 60_000 } }
        await db.turn(await db.running(id), sent)
      }
      await db.commit(result('r2'))
      for (const id of ['r1', 'r2']) await db.corrupt.forgetDue(id)
      await expectStranded(db, { r1: 'no_wake', r2: 'unread_inbox' })
    },
    { strands: true }
  )

  check(
    'finds a parent whose children have ended without their entries (P4)',
    async (db) => {
      const family = await db.family('parent', { count: 2 })
      await db.commit(...family.map((child) => turn(child, { end: COMPLETE })))
      await db.corrupt.dropInbox('parent')
      await db.corrupt.forgetDue('parent')
      await db.waiting('served', 'go')
      await db.commit(signal('s1', 'go'))
      await db.corrupt.dropInbox('served')
      await db.corrupt.forgetDue('served')
      await expectStranded(db, { parent: 'no_wake', served: 'no_wake' })
    },
    { strands: true }
  )

  check(
    'finds a parent whose child does not exist (P4)',
    async (db) => {
      for (const id of ['c1', 'c2']) await parentOf(db, id)
      await db.corrupt.dropRun('c1')
      const opened = [waitForAll(0, 1)]
      await db.turn(await db.running('of nobody'), { opened, end: suspendOnEnds(1) })
      await expectStranded(db, { 'parent of c1': 'missing_child', 'of nobody': 'missing_child' })
    },
    { strands: true }
  )

  check('finds a run under an owner that is no worker (P4)', async (db) => {
    await db.running('r1')
    await db.running('r2')
    await db.corrupt.forgetOwner('r1')
    await expectStranded(db, { r1: 'unknown_owner' })
    await db.store.removeWorker('w1')
    await expectStranded(db, { r1: 'unknown_owner' })
    await db.store.recoverExpired()
    await expectStranded(db, {})
  })

  check(
    'finds a pending and a blocked run without a due time (P4)',
    async (db) => {
      await db.pending('pending')
      await db.turn(await db.running('blocked'), { end: BLOCK })
      await expectStranded(db, {})
      for (const id of ['pending', 'blocked']) await db.corrupt.forgetDue(id)
      await expectStranded(db, { pending: 'no_due_time', blocked: 'no_due_time' })
    },
    { strands: true }
  )
}
