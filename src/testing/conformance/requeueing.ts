import assert from 'node:assert/strict'
import { compensationSeq, handoffSeq, requeueSeq } from '../../core/history.ts'
import type { Scenario } from './scenario.ts'
import type { Check } from './suite.ts'
import {
  COMPLETE,
  DIE,
  FAIL,
  newRun,
  parentLink,
  record,
  requeue,
  sleep,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForAll,
  waitForChild,
  waitForSignal,
} from './writes.ts'

/** A run that failed after two steps. */
async function failed(db: Scenario, id: string) {
  const row = await db.running(id, { tags: ['mine'] })
  const records = [record(0), record(1, { status: 'failed', output: null, error: '{"v":"no"}' })]
  await db.turn(row, { records, end: FAIL })
  return db.row(id)
}

async function placesOf(db: Scenario, id: string) {
  const { records = [] } = (await db.store.getHistory(id)) ?? {}
  return records.map(({ generation, seq, name }) => [generation, seq, name])
}

async function tagsOf(db: Scenario, id: string) {
  const tags = await db.field(id, 'tags')
  return tags.toSorted()
}

export function requeueingChecks(check: Check) {
  check(
    'records what is to be known of the life before, live beside what it retires',
    async (db) => {
      const row = await failed(db, 'r')
      const told = record(requeueSeq(0), {
        kind: 'requeue',
        name: 'requeue',
        ordinal: null,
        after: 0,
      })
      assert.deepEqual(await db.answers(requeue(row, { retire: [1], record: told })), ['requeued'])
      const { records = [] } = (await db.store.getHistory('r')) ?? {}
      assert.deepEqual(
        records.map(({ generation, seq, kind, token }) => [generation, seq, kind, token]),
        [
          [0, requeueSeq(0), 'requeue', row.token],
          [0, 0, 'local_step', row.token],
          [1, 1, 'local_step', row.token],
        ]
      )
      const [claimed] = await db.claim()
      const [loaded] = await db.store.load([{ runId: claimed!.id, inboxAfter: 0, resident: false }])
      assert.deepEqual(
        loaded?.history.map(({ seq, output }) => [seq, output]),
        [
          [requeueSeq(0), told.output],
          [0, record(0).output],
        ]
      )
    }
  )

  for (const end of [FAIL, DIE])
    check(
      `makes a run that ended by "${end.kind}" live again, under a new token (DL-9)`,
      async (db) => {
        await db.running('r')
        await db.store.advanceClock(30_000)
        await db.store.recoverExpired({ suspectFrom: 1 })
        await db.registerWorker('w2')
        const [row] = await db.claim({ owner: 'w2', claimKeys: [` ${newRun('').claimKey}`] })
        assert.equal(row?.recoveryAttempts, 1)
        await db.turn(row, { records: [record(0)], end })
        const { answers, news } = await db.commit(requeue(row))
        assert.deepEqual(answers, [{ type: 'requeued', done: true }])
        assert.deepEqual([...news.due], [newRun('').claimKey])
        const after = await db.row('r')
        assert.deepEqual(
          [after.status, after.phase, after.token, after.owner, after.recoveryAttempts],
          ['pending', 'body', row.token + 1, null, 0]
        )
        assert.deepEqual([after.error, after.errorCode, after.endedAt], [null, null, null])
        assert.deepEqual(await db.answers(turn(row, { end: COMPLETE })), ['lost'])
        const [claimed] = await db.claim({ owner: 'w2' })
        assert.equal(claimed?.id, 'r')
        assert.equal(claimed.recoveryAttempts, 0)
        const loaded = await db.load('r')
        assert.deepEqual([loaded.error, loaded.history.length], [null, 1])
        await db.turn(claimed, { end: COMPLETE })
      }
    )

  check('does nothing to a run that has moved, lives, or ended otherwise (P6)', async (db) => {
    const row = await failed(db, 'r')
    await db.turn(await db.running('done'), { end: COMPLETE })
    await db.running('live')
    const writes = [
      requeue({ id: 'r', token: row.token - 1 }),
      ...[requeue(await db.row('done')), requeue(await db.row('live'))],
      requeue({ id: 'nobody', token: 0 }),
    ]
    const before = [await db.row('r'), await db.row('done'), await db.row('live')]
    const { answers, news } = await db.commit(...writes)
    for (const answer of answers) assert.deepEqual(answer, { type: 'requeued', done: false })
    assert.deepEqual([...news.due], [])
    assert.deepEqual([await db.row('r'), await db.row('done'), await db.row('live')], before)
  })

  check('happens once, however often one batch asks for it', async (db) => {
    const row = await failed(db, 'r')
    const { answers } = await db.commit(
      requeue(row, { retire: [1] }),
      requeue(row, { retire: [0] })
    )
    assert.deepEqual(
      answers.map((answer) => answer.type === 'requeued' && answer.done),
      [true, false]
    )
    const { history } = await db.load('r')
    assert.deepEqual(
      history.map(({ seq }) => seq),
      [0]
    )
  })

  check(
    'retires records together into a generation above all others; their positions are free again',
    async (db) => {
      const row = await db.running('r')
      const undo = (seq: number) =>
        record(compensationSeq(seq), { kind: 'compensation', ordinal: null, after: 0 })
      const records = [record(0), record(1), record(2), undo(1), undo(0)]
      await db.turn(row, { records, end: FAIL })
      const retire = [compensationSeq(0), compensationSeq(1), 1, 2]
      await db.commit(requeue(row, { retire }))
      const [again] = await db.claim()
      assert.ok(again)
      await db.turn(again, { records: [record(1), undo(1)], end: FAIL })
      await db.commit(requeue(again, { retire: [compensationSeq(1), 1] }))
      const [third] = await db.claim()
      assert.ok(third)
      await db.turn(third, { records: [record(1)], end: COMPLETE })
      assert.deepEqual(await placesOf(db, 'r'), [
        ...[
          [0, 0, 'step 0'],
          [0, 1, 'step 1'],
        ],
        ...[
          [1, -2, 'step -2'],
          [1, -1, 'step -1'],
          [1, 1, 'step 1'],
          [1, 2, 'step 2'],
        ],
        ...[
          [2, -2, 'step -2'],
          [2, 1, 'step 1'],
        ],
      ])
      const { history } = await db.load('r')
      assert.deepEqual(
        history.map(({ seq }) => seq),
        [0, 1]
      )
    }
  )

  check('retires ten thousand records, which can be written again', async (db) => {
    const row = await db.running('r')
    const records = Array.from({ length: 10_000 }, (_, seq) => record(seq))
    await db.turn(row, { records, end: FAIL })
    await db.commit(requeue(row, { retire: records.map(({ seq }) => seq) }))
    const [again] = await db.claim()
    assert.ok(again)
    await db.turn(again, { records, end: COMPLETE })
    const { records: all = [] } = (await db.store.getHistory('r')) ?? {}
    assert.deepEqual([all.length, all.at(-1)?.generation], [20_000, 1])
  })

  check(
    'renames a handoff that it retires, and takes the tags of handoffs away (OE-30)',
    async (db) => {
      const row = await db.running('r', { tags: ['mine', 'onErrors'] })
      const handler = newRun('r.onError.0', { parent: parentLink('r', { seq: handoffSeq(0) }) })
      const tag = 'onError:no'
      await db.turn(row, {
        records: [record(0)],
        children: [{ run: handler, acknowledge: false }],
        opened: [{ ...waitForChild(handoffSeq(0), 'r.onError.0'), kind: 'handoff' }],
        end: { ...FAIL, kind: 'follow', tag },
      })
      assert.deepEqual(await tagsOf(db, 'r'), ['mine', 'onError:no', 'onErrors'])
      const byTag = await db.store.listRuns({ tag })
      assert.deepEqual(
        byTag.runs.map(({ id }) => id),
        ['r']
      )
      const [handling] = await db.claim()
      assert.ok(handling)
      await db.turn(handling, { end: FAIL })
      const [following] = await db.claim()
      assert.ok(following)
      const name = 'onError:r.onError.0'
      const handoff = record(handoffSeq(0), { kind: 'handoff', name, ordinal: null, after: 0 })
      await db.turn(following, {
        records: [handoff],
        closed: [handoffSeq(0)],
        seenInbox: 1,
        end: FAIL,
      })
      await db.commit(requeue(following, { retire: [handoffSeq(0), 0] }))
      assert.deepEqual(await tagsOf(db, 'r'), ['mine', 'onErrors'])
      assert.deepEqual(await db.store.listRuns({ tag }), { runs: [], next: null })
      assert.deepEqual(await placesOf(db, 'r'), [
        [1, handoffSeq(0), 'onError:retried:r.onError.0'],
        [1, 0, 'step 0'],
      ])
      assert.equal(await db.field('r', 'handoffs'), 1)
      assert.equal(await db.field('r.onError.0', 'status'), 'failed')
    }
  )

  check('leaves no wait and no entry of the run that failed', async (db) => {
    const row = await db.running('r')
    await db.turn(row, { opened: [sleep(0, 5), waitForSignal(1, 'go')] })
    await db.turn(row, { end: FAIL })
    await db.commit(requeue(row))
    assert.deepEqual([await db.waits('r'), await db.inbox('r')], [[], []])
    const [claimed] = await db.claim()
    assert.ok(claimed)
    await db.turn(claimed, { opened: [sleep(0, 5)], end: { ...SUSPEND, dueIn: 5 } })
  })

  check(
    'a run that asks again for its own children has them: over or live, they are told of once',
    async (db) => {
      const family = await db.family('p', { count: 3, needs: 1 })
      const [done, broken, live] = family
      assert.ok(done && broken && live)
      await db.commit(turn(done, { end: COMPLETE }), turn(broken, { end: FAIL }))
      const [parent] = await db.claim()
      assert.ok(parent)
      await db.turn(parent, { seenInbox: 2, closed: [0], end: FAIL })
      await db.commit(requeue(parent))
      const [again] = await db.claim()
      assert.ok(again)
      const children = [0, 1, 2].map((index) => ({
        run: newRun(`p.${index}`, { workflow: 'p children', parent: parentLink('p', { index }) }),
        acknowledge: false,
      }))
      await db.turn(again, { opened: [waitForAll(0, 3)], children, seenInbox: 2 })
      const told = async () => {
        const inbox = await db.inbox('p')
        return inbox.map((entry) => entry.kind === 'child' && [entry.index, entry.event])
      }
      assert.deepEqual(await told(), [
        [0, 'completed'],
        [1, 'failed'],
      ])
      assert.deepEqual(await db.numbersOf('p'), [3, 4])
      await db.turn(again, { seenInbox: 4, end: suspendOnEnds(1) })
      await db.turn(live, { end: COMPLETE })
      assert.deepEqual(await told(), [[2, 'completed']])
      assert.ok(await db.isDue('p'))
      assert.equal(await db.field('p.0', 'token'), done.token, 'a completed child is left alone')
    }
  )

  check('a child that was requeued tells its parent of its new end', async (db) => {
    const [child] = await db.family('p', { count: 1 })
    assert.ok(child)
    await db.turn(child, { end: FAIL })
    const [parent] = await db.claim()
    assert.ok(parent)
    await db.turn(parent, { seenInbox: 1, closed: [0], end: FAIL })
    await db.commit(requeue(child))
    await db.commit(requeue(parent))
    const [again] = await db.claim()
    assert.ok(again)
    const run = newRun('p.0', { workflow: 'p children', parent: parentLink('p') })
    const children = [{ run, acknowledge: false }]
    await db.turn(again, {
      opened: [waitForAll(0, 3)],
      children,
      seenInbox: 1,
      end: suspendOnEnds(1),
    })
    assert.deepEqual([await db.isDue('p'), await db.inbox('p')], [false, []])
    const [second] = await db.claim({ claimKeys: [run.claimKey] })
    assert.ok(second)
    await db.turn(second, { end: COMPLETE })
    assert.ok(await db.isDue('p'))
  })
}
