import assert from 'node:assert/strict'
import type { ChangeSet } from '../../core/change_set.ts'
import type { RunRow } from '../../core/run.ts'
import type { Check } from './suite.ts'
import {
  COMPLETE,
  FAIL,
  newRun,
  parentLink,
  record,
  RELEASE,
  signal,
  signalSend,
  SUSPEND,
  turn,
  waitForSignal,
} from './writes.ts'

/** A change set with everything in it that has a consequence outside its run. */
function everything(row: Pick<RunRow, 'id' | 'token'>): ChangeSet {
  const run = newRun('started by it', { parent: parentLink(row.id, { awaited: false }) })
  return turn(row, {
    records: [record(0)],
    opened: [waitForSignal(1, 'opened')],
    children: [{ run, acknowledge: true }],
    signals: [signalSend('s1', 'somebody waits')],
    end: COMPLETE,
  })
}

export function fencingChecks(check: Check) {
  check('refuses a change set under an older token with all it contains (P1)', async (db) => {
    const [child] = await db.family('parent', { count: 1 })
    await db.waiting('waiter', 'somebody waits')
    assert.ok(child)
    const before = [await db.row('parent'), await db.row('waiter'), await db.row(child.id)]
    const healthy = await db.running('healthy')
    const stale = { id: child.id, token: child.token - 1 }
    const { answers, news } = await db.commit(
      turn(healthy, { records: [record(0)] }),
      everything(stale),
      turn(healthy, { records: [record(1)], end: COMPLETE })
    )
    assert.deepEqual(
      answers.map(({ type }) => type),
      ['committed', 'lost', 'committed']
    )
    const after = [await db.row('parent'), await db.row('waiter'), await db.row(child.id)]
    assert.deepEqual(after, before)
    assert.equal(await db.store.getRun('started by it'), null)
    assert.deepEqual(await db.store.getHistory(child.id), { records: [], waits: [] })
    assert.deepEqual(await db.inbox('parent'), [])
    assert.deepEqual(await db.inbox('waiter'), [])
    assert.deepEqual([...news.ended], ['healthy'])
    const { history } = await db.load('healthy')
    assert.equal(history.length, 2)
  })

  check(
    'refuses a change set of an unknown run, of one nobody holds, and a newer token',
    async (db) => {
      const pending = await db.pending('pending')
      const running = await db.running('running')
      const types = await db.answers(
        everything({ id: 'unknown', token: 1 }),
        everything(pending),
        everything({ id: running.id, token: running.token + 1 })
      )
      assert.deepEqual(types, ['lost', 'lost', 'lost'])
      assert.equal(await db.store.getRun('started by it'), null)
    }
  )

  check('refuses the former holder once another worker has claimed the run', async (db) => {
    const row = await db.running('r1')
    await db.store.advanceClock(30_000)
    await db.store.recoverExpired()
    await db.registerWorker('w2')
    const [claimed] = await db.claim({ owner: 'w2' })
    assert.ok(claimed)
    const types = await db.answers(turn(row, { end: FAIL }), turn(claimed, { end: COMPLETE }))
    assert.deepEqual(types, ['lost', 'committed'])
    assert.equal(await db.field('r1', 'status'), 'completed')
  })

  check('refuses everything after the turn that gave the run away', async (db) => {
    const ends = [COMPLETE, FAIL, RELEASE, { ...SUSPEND, dueIn: 5 }]
    for (const [index, end] of ends.entries()) {
      const row = await db.running(`r${index}`)
      const types = await db.answers(turn(row, { end }), turn(row, { records: [record(0)] }))
      assert.deepEqual(types, ['committed', 'lost'])
      assert.deepEqual(await db.answers(turn(row, { end: COMPLETE })), ['lost'])
      const { history } = await db.load(row.id)
      assert.deepEqual(history, [])
    }
  })

  check('never changes a run that has ended (P6)', async (db) => {
    for (const end of [COMPLETE, FAIL]) {
      const row = await db.running(end.kind)
      await db.turn(row, { opened: [waitForSignal(0, end.kind)], end })
      const before = await db.row(row.id)
      const { answers } = await db.commit(turn(row), signal('s1', end.kind))
      assert.deepEqual(answers, [{ type: 'lost' }, { type: 'signalled', delivered: false }])
      assert.deepEqual(await db.row(row.id), before)
      assert.deepEqual(await db.inbox(row.id), [])
      assert.deepEqual(await db.keptOf(end.kind), ['s1'])
    }
  })

  check('refuses a run that records one position twice, and no other of the batch', async (db) => {
    const [first, second] = [await db.running('r1'), await db.running('r2')]
    await db.turn(first, { records: [record(0)] })
    const again = turn(first, {
      records: [record(1), record(0, { output: '"other"' })],
      children: [{ run: newRun('started by it'), acknowledge: false }],
      signals: [signalSend('s1', 'go')],
    })
    const types = await db.answers(
      turn(second, { records: [record(0)] }),
      again,
      turn(second, { end: COMPLETE }),
      turn(first, { end: COMPLETE })
    )
    assert.deepEqual(types, ['committed', 'refused', 'committed', 'refused'])
    const { history } = await db.load('r1')
    assert.deepEqual(
      history.map(({ output }) => output),
      ['{"v":0}']
    )
    assert.equal(await db.field('r1', 'status'), 'running')
    assert.equal(await db.field('r2', 'status'), 'completed')
    assert.equal(await db.store.getRun('started by it'), null)
    assert.deepEqual(await db.keptOf('go'), [])
  })

  check('refuses it when both records come in one batch', async (db) => {
    const row = await db.running('r1')
    const types = await db.answers(
      turn(row, { records: [record(0)] }),
      turn(row, { records: [record(0)] })
    )
    assert.deepEqual(types, ['refused', 'refused'])
    const { history } = await db.load('r1')
    assert.deepEqual(history, [])
  })

  check(
    'records one history when the two connections of a lost and a new owner write',
    async (db) => {
      const other = await db.another()
      const row = await db.running('r1')
      await db.store.advanceClock(30_000)
      await db.store.recoverExpired()
      await db.registerWorker('w2')
      const [claimed] = await db.claim({ owner: 'w2' })
      assert.ok(claimed)
      const flushes = await Promise.all([
        db.store.commit([turn(row, { records: [record(0, { output: '"old"' })], end: COMPLETE })]),
        other.commit([turn(claimed, { records: [record(0, { output: '"new"' })], end: COMPLETE })]),
      ])
      const types = flushes.map(({ answers }) => answers[0]?.type)
      assert.deepEqual(types, ['lost', 'committed'])
      const { history } = await db.load('r1')
      assert.deepEqual(
        history.map(({ output, token }) => [output, token]),
        [['"new"', claimed.token]]
      )
    }
  )
}
