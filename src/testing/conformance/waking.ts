import assert from 'node:assert/strict'
import type { ChangeSet } from '../../core/change_set.ts'
import type { RunRow } from '../../core/run.ts'
import type { Scenario } from './scenario.ts'
import type { Check } from './suite.ts'
import {
  CLAIM_KEY,
  claimKeyOf,
  COMPLETE,
  FAIL,
  newRun,
  parentLink,
  signal,
  sleep,
  sleepUntil,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForAll,
  waitForSignal,
} from './writes.ts'

/** A running parent with one running child, the end of both turns yet to be written. */
async function pair(db: Scenario, id: string): Promise<{ child: ChangeSet; parent: ChangeSet }> {
  const parent = await db.running(id)
  const run = newRun(`${id}.0`, { workflow: id, parent: parentLink(id) })
  const children = [{ run, acknowledge: false }]
  await db.turn(parent, { opened: [waitForAll(0, 1)], children })
  const [child] = await db.claim({ claimKeys: [claimKeyOf(id)] })
  assert.ok(child)
  return { child: turn(child, { end: COMPLETE }), parent: turn(parent, { end: suspendOnEnds(1) }) }
}

function end(
  row: RunRow | undefined,
  outcome: typeof COMPLETE | typeof FAIL = COMPLETE
): ChangeSet {
  assert.ok(row)
  return turn(row, { end: outcome })
}

export function wakingChecks(check: Check) {
  check('makes a parent due when its three children end in one flush', async (db) => {
    const children = await db.family('parent', { count: 3 })
    const { news } = await db.commit(...children.map((child) => end(child)))
    assert.ok(await db.isDue('parent'))
    assert.deepEqual([...news.due], [CLAIM_KEY])
    const inbox = await db.inbox('parent')
    assert.deepEqual(
      inbox.map(({ no }) => no),
      [1, 2, 3]
    )
    assert.deepEqual(
      inbox.map((entry) => entry.kind === 'child' && [entry.seq, entry.index, entry.childId]),
      [0, 1, 2].map((index) => [0, index, `parent.${index}`])
    )
    assert.deepEqual(await db.claimedIds(), ['parent'])
    assert.deepEqual(await db.claimedIds(), [])
  })

  check('makes it due at the last of the ends it needs, flush by flush', async (db) => {
    const [first, second, third] = await db.family('parent', { count: 3, needs: 2 })
    await db.commit(end(first))
    assert.equal(await db.field('parent', 'dueAt'), null)
    await db.commit(end(second))
    assert.ok(await db.isDue('parent'))
    await db.commit(end(third))
    const [parent] = await db.claim()
    assert.equal(parent?.inboxSeq, 3)
  })

  check('counts the ends it needs from the entries it has seen', async (db) => {
    const [first, second, third] = await db.family('parent', { count: 3, needs: 1 })
    await db.commit(end(first))
    const [parent] = await db.claim()
    assert.ok(parent)
    await db.turn(parent, { seenInbox: 1, end: suspendOnEnds(2) })
    assert.equal(await db.field('parent', 'wakeSeq'), 3)
    await db.commit(end(second))
    assert.equal(await db.field('parent', 'dueAt'), null)
    await db.commit(end(third))
    assert.ok(await db.isDue('parent'))
    assert.deepEqual(await db.numbersOf('parent'), [2, 3])
  })

  check('wakes for the first failure at once where that decides (fail fast)', async (db) => {
    const [first] = await db.family('eager', { count: 3, link: { failFast: true } })
    await db.commit(end(first, FAIL))
    assert.ok(await db.isDue('eager'))
    const [done] = await db.family('fine so far', { count: 3, link: { failFast: true } })
    await db.commit(end(done))
    assert.equal(await db.field('fine so far', 'dueAt'), null)
  })

  check('lets a failure wait with the others where all ends are needed', async (db) => {
    const [first, second] = await db.family('patient', { count: 2 })
    await db.commit(end(first, FAIL))
    assert.equal(await db.field('patient', 'dueAt'), null)
    await db.commit(end(second))
    assert.ok(await db.isDue('patient'))
    const inbox = await db.inbox('patient')
    const events = inbox.map((entry) => entry.kind === 'child' && entry.event)
    assert.deepEqual(events, ['failed', 'completed'])
  })

  check('keeps a wake beside a suspension in one flush, in either order', async (db) => {
    for (const order of ['child first', 'parent first']) {
      const { child, parent } = await pair(db, order)
      const writes = order === 'child first' ? [child, parent] : [parent, child]
      assert.deepEqual(await db.answers(...writes), ['committed', 'committed'])
      assert.ok(await db.isDue(order), order)
      assert.deepEqual(await db.numbersOf(order), [1])
    }
  })

  check('keeps a wake before and after a suspension, flush by flush', async (db) => {
    for (const order of ['child first', 'parent first']) {
      const { child, parent } = await pair(db, order)
      const writes = order === 'child first' ? [child, parent] : [parent, child]
      for (const write of writes) await db.commit(write)
      assert.ok(await db.isDue(order), order)
    }
  })

  check('keeps a wake when parent and child are written by two connections at once', async (db) => {
    const other = await db.another()
    for (let round = 0; round < 10; round++) {
      const { child, parent } = await pair(db, `round ${round}`)
      await Promise.all([db.store.commit([child]), other.commit([parent])])
      assert.ok(await db.isDue(`round ${round}`))
    }
  })

  check('wakes the parent of two children that end on two connections at once', async (db) => {
    const other = await db.another()
    for (let round = 0; round < 10; round++) {
      const [first, second] = await db.family(`round ${round}`, { count: 2 })
      await Promise.all([db.store.commit([end(first)]), other.commit([end(second)])])
      assert.ok(await db.isDue(`round ${round}`))
      assert.deepEqual(await db.numbersOf(`round ${round}`), [1, 2])
    }
  })

  check('wakes for a signal at once, however many ends are needed', async (db) => {
    const parent = await db.running('parent')
    const run = newRun('parent.0', { parent: parentLink('parent', { seq: 1 }) })
    const opened = [waitForSignal(0, 'stop'), waitForAll(1, 1)]
    const children = [{ run, acknowledge: false }]
    await db.turn(parent, { opened, children, end: suspendOnEnds(1) })
    await db.store.advanceClock(5)
    const { news } = await db.commit(signal('s1', 'stop'))
    assert.ok(await db.isDue('parent'))
    assert.deepEqual([...news.due], [CLAIM_KEY])
  })

  check('makes a suspension due at once that has not seen the newest entry', async (db) => {
    const row = await db.running('r1')
    await db.turn(row, { opened: [waitForSignal(0, 'a'), waitForSignal(1, 'b')] })
    await db.commit(signal('a', 'a'), signal('b', 'b'))
    await db.turn(row, { seenInbox: 1, closed: [0], end: { ...SUSPEND, dueIn: 60_000 } })
    assert.ok(await db.isDue('r1'))
    assert.deepEqual(await db.signalsOf('r1'), ['b'])
  })

  check('leaves a suspension asleep that has seen all of them, and deletes them', async (db) => {
    const row = await db.running('r1')
    const opened = [waitForSignal(0, 'a'), waitForSignal(1, 'b')]
    await db.turn(row, { opened })
    await db.commit(signal('a', 'a'))
    await db.turn(row, { seenInbox: 1, closed: [0], end: SUSPEND })
    assert.equal(await db.field('r1', 'dueAt'), null)
    assert.deepEqual(await db.inbox('r1'), [])
    await db.commit(signal('b', 'b'))
    assert.deepEqual(await db.numbersOf('r1'), [2])
  })

  check('wakes a sleeper when its time has come by the clock of the store', async (db) => {
    const row = await db.running('r1')
    const { news } = await db.commit(
      turn(row, { opened: [sleep(0, 60_000)], end: { ...SUSPEND, dueIn: 60_000 } })
    )
    assert.equal(news.dueIn, 60_000)
    assert.deepEqual(await db.claimedIds(), [])
    const early = await db.store.nextDueIn([CLAIM_KEY])
    assert.ok(early !== null && early > 0 && early <= 60_000, `due in ${early}`)
    await db.store.advanceClock(59_000)
    const near = await db.store.nextDueIn([CLAIM_KEY])
    assert.ok(near !== null && near <= 1_000, `due in ${near}`)
    await db.store.advanceClock(1_000)
    assert.equal(await db.store.nextDueIn([CLAIM_KEY]), 0)
    const [woken] = await db.claim()
    assert.deepEqual([woken?.id, woken?.recoveryAttempts], ['r1', 0])
  })

  check('sleeps until the earlier of an instant and a duration', async (db) => {
    const now = await db.store.now()
    const times = [
      ['instant', now + 10_000, 60_000],
      ['duration', now + 120_000, 20_000],
      ['past', now - 5, null],
    ] as const
    for (const [id, dueAt, dueIn] of times) {
      const row = await db.running(id, { workflow: id })
      const opened = [sleepUntil(0, dueAt), ...(dueIn === null ? [] : [sleep(1, dueIn)])]
      await db.turn(row, { opened, end: { ...SUSPEND, dueAt, dueIn } })
    }
    assert.equal(await db.field('instant', 'dueAt'), now + 10_000)
    const { dueAt, updatedAt } = await db.row('duration')
    assert.equal(dueAt, updatedAt + 20_000)
    const keys = times.map(([id]) => claimKeyOf(id))
    assert.deepEqual(await db.claimedIds({ claimKeys: keys }), ['past'])
    await db.store.advanceClock(20_000)
    assert.deepEqual(await db.claimedIds({ claimKeys: keys }), ['instant', 'duration'])
  })

  check('gives the nearest due time among the keys that were asked for', async (db) => {
    for (const [id, dueIn] of Object.entries({ soon: 5_000, later: 50_000, other: 1_000 })) {
      const workflow = id === 'other' ? 'other' : 'import'
      await db.turn(await db.running(id, { workflow }), {
        opened: [sleep(0, dueIn)],
        end: { ...SUSPEND, dueIn },
      })
    }
    const next = await db.store.nextDueIn([CLAIM_KEY, claimKeyOf('nothing')])
    assert.ok(next !== null && next > 1_000 && next <= 5_000, `due in ${next}`)
    assert.equal(await db.store.nextDueIn([claimKeyOf('nothing')]), null)
    assert.equal(await db.store.nextDueIn([]), null)
  })

  check('ends a child whose parent has ended before', async (db) => {
    const children = await db.family('parent', { count: 2, needs: 1 })
    await db.commit(end(children[0]))
    const [parent] = await db.claim()
    assert.ok(parent)
    await db.turn(parent, { seenInbox: 1, end: COMPLETE })
    const before = await db.row('parent')
    assert.deepEqual(await db.answers(end(children[1])), ['committed'])
    assert.deepEqual(await db.row('parent'), before)
    assert.deepEqual(await db.inbox('parent'), [])
  })
}
