import assert from 'node:assert/strict'
import type { Check } from './suite.ts'
import {
  CLAIM_KEY,
  COMPLETE,
  FAIL,
  record,
  sleep,
  sleepUntil,
  SUSPEND,
  turn,
  waitForSignal,
  waitForAll,
  waitForChild,
} from './writes.ts'

export function recordingChecks(check: Check) {
  check('gives the history back whole, in order of position', async (db) => {
    const row = await db.running('r1', { input: '{"v":"in"}' })
    const failed = record(2, {
      ...{ status: 'failed', attempts: 3, output: null, error: '{"message":"no"}' },
      ...{ ordinal: 0, after: 0, kind: 'step', name: 'charge', durationMs: 250 },
    })
    const abandoned = record(10, { status: 'abandoned', ordinal: null, output: null })
    await db.turn(row, { records: [abandoned, failed] })
    await db.turn(row, { records: [record(9), record(0)] })
    const { history, input, now } = await db.load('r1')
    assert.equal(input, '{"v":"in"}')
    assert.deepEqual(
      history.map(({ seq }) => seq),
      [0, 2, 9, 10]
    )
    const stored = history[1]
    assert.ok(stored)
    const { startedAt, endedAt, ...rest } = stored
    assert.deepEqual(rest, { ...failed, generation: 0, token: row.token })
    assert.equal(endedAt - startedAt, 250)
    assert.ok(endedAt <= now)
    assert.equal(history[3]?.ordinal, null)
    const { records } = (await db.store.getHistory('r1')) ?? {}
    assert.deepEqual(records, history)
  })

  check('appends the records of several change sets of one run in one batch', async (db) => {
    const row = await db.running('r1')
    const sets = [0, 1, 2].map((seq) => turn(row, { records: [record(seq)] }))
    await db.commit(...sets, turn(row, { records: [record(3)], end: COMPLETE }))
    const { history } = await db.load('r1')
    assert.equal(history.length, 4)
    assert.equal(await db.field('r1', 'status'), 'completed')
  })

  check('gives a resident run its waits and newer entries only', async (db) => {
    const row = await db.running('r1')
    const opened = [waitForSignal(1, 'a'), waitForSignal(2, 'b')]
    await db.turn(row, { records: [record(0)], opened })
    for (const token of ['a', 'b'])
      await db.commit({ type: 'signal', signal: { id: token, token, payload: '1' } })
    const loaded = await db.load('r1', { resident: true, inboxAfter: 1 })
    assert.deepEqual([loaded.input, loaded.history], [null, []])
    assert.deepEqual(
      loaded.waits.map(({ seq }) => seq),
      [1, 2]
    )
    assert.deepEqual(
      loaded.inbox.map(({ no }) => no),
      [2]
    )
  })

  check('leaves unknown runs out, and loads several at once', async (db) => {
    await db.pending('r1')
    await db.pending('r2')
    const requests = ['r2', 'unknown', 'r1'].map((runId) => ({
      ...{ runId, resident: false, inboxAfter: 0 },
    }))
    const loaded = await db.store.load(requests)
    assert.deepEqual(loaded.map(({ runId }) => runId).toSorted(), ['r1', 'r2'])
    assert.deepEqual(await db.store.load([]), [])
    assert.equal(await db.store.getHistory('unknown'), null)
  })

  check('keeps an open wait until it is closed or replaced', async (db) => {
    const row = await db.running('r1')
    const opened = [sleep(3, 1_000), sleepUntil(1, 77), waitForChild(5, 'c'), waitForAll(7, 9)]
    const answer = await db.turn(row, { opened })
    const [fixed, counted, child, all] = await db.waits('r1')
    assert.ok(answer.type === 'committed' && fixed && counted)
    assert.deepEqual([fixed.seq, fixed.dueAt], [1, 77])
    assert.deepEqual([counted.seq, counted.dueAt], [3, answer.now + 1_000])
    assert.equal(counted.openedAt, answer.now)
    assert.deepEqual([child?.target, child?.inputs], ['c', null])
    assert.deepEqual([all?.target, all?.inputs], [null, 9])
    const retry = { ...sleep(3, 5_000), attempts: 1, error: '"once"' }
    await db.turn(row, { opened: [retry], closed: [1, 5, 7] })
    const [replaced, ...others] = await db.waits('r1')
    assert.deepEqual([replaced?.attempts, replaced?.error, others], [1, '"once"', []])
    await db.turn(row, { end: COMPLETE })
    assert.deepEqual(await db.waits('r1'), [])
  })

  check('ends a run with its payload, code and instant, and tells of it', async (db) => {
    const [good, bad] = [await db.running('good'), await db.running('bad')]
    const { news } = await db.commit(turn(good, { end: COMPLETE }), turn(bad, { end: FAIL }))
    assert.deepEqual([...news.ended].toSorted(), ['bad', 'good'])
    const completed = await db.row('good')
    assert.deepEqual([completed.status, completed.output], ['completed', COMPLETE.output])
    assert.deepEqual([completed.owner, completed.dueAt], [null, null])
    assert.equal(completed.endedAt, completed.updatedAt)
    const failed = await db.row('bad')
    assert.deepEqual(
      [failed.status, failed.error, failed.errorCode, failed.output],
      ['failed', FAIL.error, FAIL.errorCode, null]
    )
  })

  check(
    'offers a blocked run again later, and forgets its error once the history fits',
    async (db) => {
      const row = await db.running('r1')
      const block = { kind: 'block', error: '"mismatch"', errorCode: 'non_determinism' } as const
      const { news } = await db.commit(turn(row, { end: { ...block, retryIn: 500 } }))
      assert.equal(news.dueIn, 500)
      const blocked = await db.row('r1')
      assert.deepEqual(
        [blocked.status, blocked.error, blocked.errorCode, blocked.owner],
        ['blocked', '"mismatch"', 'non_determinism', null]
      )
      assert.deepEqual(await db.claimedIds(), [])
      await db.store.advanceClock(500)
      const [again] = await db.claim()
      assert.ok(again)
      assert.equal(again.recoveryAttempts, 0)
      await db.turn(again, { opened: [sleep(0, 5)], end: { ...SUSPEND, dueIn: 5 } })
      const { error, errorCode } = await db.row('r1')
      assert.deepEqual([error, errorCode], [null, null])
    }
  )

  check(
    'answers with the number of the newest inbox entry, those of the batch included',
    async (db) => {
      const row = await db.running('r1')
      await db.turn(row, { opened: [waitForSignal(0, 'a'), waitForSignal(1, 'b')] })
      const send = (token: string) =>
        ({ type: 'signal', signal: { id: token, token, payload: '1' } }) as const
      await db.commit(send('a'))
      const { answers, news } = await db.commit(turn(row), send('b'))
      assert.ok(answers[0]?.type === 'committed')
      assert.equal(answers[0].inboxSeq, 2)
      assert.deepEqual([...news.inbox], ['r1'])
      assert.equal(await db.store.nextDueIn([CLAIM_KEY]), null)
    }
  )

  check('writes nothing for an empty batch', async (db) => {
    const { answers, news } = await db.commit()
    assert.deepEqual(answers, [])
    assert.deepEqual([news.due.size, news.inbox.size, news.ended.size], [0, 0, 0])
    assert.equal(news.dueIn, null)
  })
}
