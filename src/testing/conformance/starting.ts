import assert from 'node:assert/strict'
import type { Check } from './suite.ts'
import {
  CLAIM_KEY,
  COMPLETE,
  newRun,
  record,
  signal,
  start,
  startLeased,
  SUSPEND,
  turn,
  waitForSignal,
} from './writes.ts'

export function startingChecks(check: Check) {
  check('stores a run that is due at once, with its payload and tags', async (db) => {
    const before = await db.store.now()
    const run = newRun('r1', { input: '{"v":1}', tags: ['blue', 'green', 'blue'], origin: 'shop' })
    const { answers, news } = await db.commit({ type: 'start', run, leaseTo: null })
    const stored = await db.row('r1')
    const { input, output, error, tags, attributes, ...row } = stored
    assert.deepEqual(answers, [{ type: 'started', created: true, run: row }])
    assert.deepEqual([input, output, error], ['{"v":1}', null, null])
    assert.deepEqual(tags.toSorted(), ['blue', 'green'])
    assert.ok(row.createdAt >= before && row.createdAt <= (await db.store.now()))
    assert.deepEqual(row, {
      ...{ id: 'r1', workflow: 'import', version: '1', claimKey: CLAIM_KEY },
      ...{ namespace: 'default', origin: 'shop', status: 'pending', phase: 'body', priority: 1 },
      ...{
        owner: null,
        token: 0,
        recoveryAttempts: 0,
        parkedAt: null,
        inboxSeq: 0,
        wakeSeq: null,
        parent: null,
      },
      ...{ handles: null, routeChain: [], handoffs: 0, deadlineAt: null },
      ...{ createdBy: 'nonce of r1', format: 1, errorCode: null, startedAt: null, endedAt: null },
      ...{ dueAt: row.createdAt, createdAt: row.createdAt, updatedAt: row.createdAt },
    })
    assert.deepEqual([...news.due], [CLAIM_KEY])
    assert.equal(await db.store.nextDueIn([CLAIM_KEY]), 0)
  })

  check('answers a taken id with the run that has it, and changes nothing', async (db) => {
    const first = await db.pending('r1', { input: '{"v":1}' })
    const again = start('r1', { input: '{"v":2}', tags: ['late'] })
    const other = startLeased('r1', { workflow: 'export' })
    const { answers } = await db.commit(again, other)
    const existing = { type: 'started', created: false, run: first }
    assert.deepEqual(answers, [existing, existing])
    const { input, tags } = await db.row('r1')
    assert.deepEqual([input, tags], ['{"v":1}', []])
  })

  check('starts an id once that comes twice in one batch', async (db) => {
    const { answers } = await db.commit(start('r1', { input: '{"v":1}' }), start('r1'), start('r2'))
    const created = answers.map((answer) => answer.type === 'started' && answer.created)
    assert.deepEqual(created, [true, false, true])
    assert.equal(await db.field('r1', 'input'), '{"v":1}')
  })

  check('leaves a run that has ended as it is when its id is started again (P6)', async (db) => {
    await db.turn(await db.running('r1'), { end: COMPLETE })
    const { answers } = await db.commit(start('r1'))
    assert.ok(answers[0]?.type === 'started' && !answers[0].created)
    assert.equal(answers[0].run.status, 'completed')
    assert.deepEqual(await db.claimedIds(), [])
  })

  check('leases a run to its starter, so that no claim gets it', async (db) => {
    const row = await db.running('r1')
    assert.deepEqual([row.status, row.owner, row.token, row.dueAt], ['running', 'w1', 1, null])
    assert.equal(row.startedAt, row.createdAt)
    assert.deepEqual(await db.claimedIds(), [])
    assert.deepEqual(await db.answers(turn(row, { end: COMPLETE })), ['committed'])
  })

  check('takes the first turns of a run in the batch that starts it', async (db) => {
    const row = { id: 'r1', token: 1 }
    const types = await db.answers(
      startLeased('r1'),
      turn(row, { records: [record(0)], opened: [waitForSignal(1, 'go')] }),
      turn(row, { records: [record(2)], end: SUSPEND }),
      signal('s1', 'go')
    )
    assert.deepEqual(types, ['started', 'committed', 'committed', 'signalled'])
    const { status, inboxSeq, input } = await db.row('r1')
    assert.deepEqual([status, inboxSeq, input], ['suspended', 1, '{"v":null}'])
    assert.ok(await db.isDue('r1'))
    const { history, inbox } = await db.load('r1')
    assert.deepEqual([history.length, inbox.length], [2, 1])
    const ending = turn({ id: 'r2', token: 1 }, { end: COMPLETE })
    assert.deepEqual(await db.answers(startLeased('r2'), ending), ['started', 'committed'])
    assert.equal(await db.field('r2', 'output'), COMPLETE.output)
  })

  check('keeps ids apart that differ in case or by a trailing character only', async (db) => {
    const ids = ['Order-1', 'order-1', 'order-1.', 'ordér-1', 'order-1é']
    for (const id of ids) await db.pending(id, { input: `"${id}"` })
    for (const id of ids) assert.equal(await db.field(id, 'input'), `"${id}"`)
  })
}
