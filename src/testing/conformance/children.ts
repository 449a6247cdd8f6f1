import assert from 'node:assert/strict'
import type { NewChild } from '../../core/change_set.ts'
import type { ParentLink } from '../../core/run.ts'
import type { Check } from './suite.ts'
import {
  claimKeyOf,
  COMPLETE,
  FAIL,
  newRun,
  parentLink,
  suspendOnEnds,
  SUSPEND,
  turn,
  waitForAll,
  waitForChild,
} from './writes.ts'

const MANY = 5_000

function child(id: string, link: Partial<ParentLink> & { runId: string }): NewChild {
  const { runId, ...overrides } = link
  const run = newRun(id, { workflow: 'child', parent: parentLink(runId, overrides) })
  return { run, acknowledge: false }
}

export function childrenChecks(check: Check) {
  check('starts children with the commit, due at once, with their parent', async (db) => {
    const row = await db.running('p')
    const started = child('p.c', { runId: 'p', seq: 2, index: 7, failFast: true })
    const { news } = await db.commit(
      turn(row, { opened: [waitForChild(2, 'p.c')], children: [started], end: suspendOnEnds(1) })
    )
    assert.deepEqual([...news.due], [claimKeyOf('child')])
    const { parent, status } = await db.row('p.c')
    assert.equal(status, 'pending')
    assert.deepEqual(parent, { runId: 'p', seq: 2, index: 7, awaited: true, failFast: true })
    assert.deepEqual(await db.claimedIds({ claimKeys: [claimKeyOf('child')] }), ['p.c'])
  })

  check('tells an awaiting parent at once that an id is taken', async (db) => {
    await db.pending('c', { input: '"mine"' })
    const row = await db.running('p')
    await db.turn(row, {
      opened: [waitForChild(0, 'c')],
      children: [child('c', { runId: 'p' })],
      end: suspendOnEnds(1),
    })
    assert.ok(await db.isDue('p'))
    const [entry] = await db.inbox('p')
    assert.ok(entry)
    const { receivedAt, ...rest } = entry
    const reply = { kind: 'child', no: 1, seq: 0, index: 0, childId: 'c', event: 'taken' }
    assert.deepEqual(rest, reply)
    const stored = await db.row('c')
    assert.deepEqual([stored.input, stored.parent], ['"mine"', null])
  })

  check('starts an id once that one change set asks for twice', async (db) => {
    const row = await db.running('p')
    const children = [0, 1].map((index) => child('c', { runId: 'p', index }))
    await db.turn(row, {
      opened: [waitForAll(0, children.length)],
      children,
      end: suspendOnEnds(2),
    })
    const inbox = await db.inbox('p')
    assert.deepEqual(
      inbox.map((entry) => entry.kind === 'child' && [entry.index, entry.event]),
      [[1, 'taken']]
    )
    assert.deepEqual(await db.store.childStates({ runId: 'p', seq: 0 }), [
      { index: 0, runId: 'c', status: 'pending' },
    ])
  })

  check('answers a start that asks for it', async (db) => {
    await db.pending('taken')
    const row = await db.running('p')
    const asked = ['new', 'taken'].map((id, index) => ({
      ...child(id, { runId: 'p', seq: 3, index, awaited: false }),
      acknowledge: true,
    }))
    const silent = child('silent', { runId: 'p', seq: 4, awaited: false })
    const children = [...asked, silent, child('taken', { runId: 'p', seq: 5, awaited: false })]
    await db.turn(row, { opened: [waitForChild(3, 'new')], children, end: SUSPEND })
    assert.ok(await db.isDue('p'))
    const inbox = await db.inbox('p')
    assert.deepEqual(
      inbox.map((entry) => entry.kind === 'child' && [entry.seq, entry.childId, entry.event]),
      [
        [3, 'new', 'started'],
        [3, 'taken', 'taken'],
      ]
    )
  })

  check('tells a parent nothing of the end of a child it does not await', async (db) => {
    const row = await db.running('p')
    const children = [child('c', { runId: 'p', awaited: false })]
    await db.turn(row, { children, end: COMPLETE })
    const other = await db.running('q')
    await db.turn(other, { children: [child('d', { runId: 'q', awaited: false })] })
    for (const started of await db.claim({ claimKeys: [claimKeyOf('child')] }))
      await db.turn(started, { end: COMPLETE })
    assert.deepEqual(await db.inbox('q'), [])
    assert.equal(await db.field('q', 'inboxSeq'), 0)
    assert.deepEqual(
      [await db.field('c', 'status'), await db.field('d', 'status')],
      ['completed', 'completed']
    )
  })

  check('gives the outcomes of ended children by index, and the state of all', async (db) => {
    const family = await db.family('p', { count: 12, needs: 1 })
    const [last, second, fifth] = [11, 1, 4].map((index) => family[index])
    assert.ok(last && second && fifth)
    await db.commit(turn(last, { end: COMPLETE }), turn(second, { end: FAIL }))
    await db.turn(fifth, { end: { kind: 'complete', output: '"five"' } })
    const operation = { runId: 'p', seq: 0 }
    assert.deepEqual(await db.store.childOutcomes(operation), [
      { index: 1, runId: 'p.1', status: 'failed', output: null, error: FAIL.error },
      { index: 4, runId: 'p.4', status: 'completed', output: '"five"', error: null },
      { index: 11, runId: 'p.11', status: 'completed', output: COMPLETE.output, error: null },
    ])
    const states = await db.store.childStates(operation)
    assert.deepEqual(
      states.map(({ index }) => index),
      Array.from({ length: 12 }, (_, index) => index)
    )
    const ended = states.filter(({ status }) => status !== 'running')
    assert.deepEqual(ended, [
      { index: 1, runId: 'p.1', status: 'failed' },
      { index: 4, runId: 'p.4', status: 'completed' },
      { index: 11, runId: 'p.11', status: 'completed' },
    ])
    assert.deepEqual(await db.store.childOutcomes({ runId: 'p', seq: 1 }), [])
    assert.deepEqual(await db.store.childStates({ runId: 'unknown', seq: 0 }), [])
  })

  check(`starts and ends ${MANY} children of one change set (case 19)`, async (db) => {
    const family = await db.family('p', { count: MANY })
    assert.equal(family.length, MANY)
    for (let from = 0; from < MANY; from += 1_000) {
      assert.equal(await db.field('p', 'dueAt'), null)
      const batch = family.slice(from, from + 1_000)
      const answers = await db.answers(...batch.map((row) => turn(row, { end: COMPLETE })))
      assert.ok(answers.every((answer) => answer === 'committed'))
    }
    assert.ok(await db.isDue('p'))
    assert.deepEqual(
      await db.numbersOf('p'),
      Array.from({ length: MANY }, (_, index) => index + 1)
    )
    const states = await db.store.childStates({ runId: 'p', seq: 0 })
    assert.deepEqual(
      states.map(({ index, status }) => [index, status]),
      Array.from({ length: MANY }, (_, index) => [index, 'completed'])
    )
    const [parent] = await db.claim()
    assert.ok(parent)
    await db.turn(parent, { closed: [0], seenInbox: MANY, end: COMPLETE })
    assert.deepEqual(await db.inbox('p'), [])
  })
}
