import assert from 'node:assert/strict'
import type { DispatchKey } from '../../core/dispatch.ts'
import type { Scenario } from './scenario.ts'
import type { Check } from './suite.ts'
import {
  cancel,
  COMPLETE,
  DIE,
  dispatched,
  FAIL,
  RELEASE,
  record,
  result,
  sleep,
  SUSPEND,
  turn,
} from './writes.ts'

const DEADLINE_MS = 60_000
const FIRST: DispatchKey = { runId: 'r', seq: 0, generation: 1, attempt: 1 }

/** A run that is suspended on a step that was sent to workers. */
async function sent(db: Scenario, wait = dispatched(0), id = 'r') {
  const row = await db.running(id)
  const end = { ...SUSPEND, dueIn: wait.dueIn }
  await db.turn(row, { opened: [wait], end })
  return row
}

/** Ms from now until the step at position 0 of a run is due. */
async function untilDue(db: Scenario, id = 'r'): Promise<number> {
  const [wait] = await db.waits(id)
  return (wait?.dueAt ?? Number.NaN) - (await db.store.now())
}

export function dispatchingChecks(check: Check) {
  check(
    'keeps what was sent for a step with its wait, beside waits that send nothing',
    async (db) => {
      const step = dispatched(0, {
        ...{ generation: 7, attempt: 3, id: 'd3', redispatches: 2, silenceMs: null },
        ...{ attempts: 2, dueIn: 5_000 },
      })
      const end = { ...SUSPEND, dueIn: 5_000 }
      await db.turn(await db.running('r'), { opened: [sleep(1, 9_000), step], end })
      const waits = await db.waits('r')
      assert.deepEqual(
        waits.map(({ attempts, dispatch }) => ({ attempts, dispatch })),
        [
          { attempts: 2, dispatch: step.dispatch },
          { attempts: 0, dispatch: null },
        ]
      )
      const history = await db.store.getHistory('r')
      assert.deepEqual(history?.waits, waits)
    }
  )

  check('replaces what was sent, by what is sent again and by nothing', async (db) => {
    await sent(db)
    const [again] = await db.commit({ type: 'wake', runId: 'r' }).then(() => db.claim())
    assert.ok(again)
    const other = dispatched(0, { id: 'd2', redispatches: 1, silenceMs: 1_000 })
    await db.turn(again, { opened: [other] })
    const [wait] = await db.waits('r')
    assert.deepEqual(wait?.dispatch, other.dispatch)
    await db.turn(again, { opened: [{ ...dispatched(0), dispatch: null }] })
    const [plain] = await db.waits('r')
    assert.equal(plain?.dispatch, null)
    await db.turn(again, { closed: [0], end: COMPLETE })
  })

  for (const outcome of [
    { status: 'completed', output: '{"v":[1]}' },
    { status: 'failed', error: '{"v":{"name":"Error","message":"no"}}' },
  ] as const)
    check(`puts a result (${outcome.status}) into the inbox and makes the run due`, async (db) => {
      await sent(db)
      const write = result('r', { generation: 4, attempt: 2, dispatchId: 'd2', outcome })
      const { answers, news } = await db.commit(write)
      assert.deepEqual(answers, [{ type: 'received', done: true }])
      assert.deepEqual([...news.due], [await db.field('r', 'claimKey')])
      assert.ok(await db.isDue('r'))
      const [entry] = await db.inbox('r')
      assert.ok(entry)
      const { receivedAt, ...rest } = entry
      assert.deepEqual(rest, {
        ...{ kind: 'result', no: 1, seq: 0, generation: 4, attempt: 2, dispatchId: 'd2', outcome },
      })
      assert.ok(receivedAt <= (await db.store.now()))
    })

  check(
    'tells a running run of a result, and wakes one that waits for children too',
    async (db) => {
      const row = await db.running('r')
      await db.turn(row, { opened: [dispatched(0)] })
      const { news } = await db.commit(result('r'))
      assert.deepEqual([...news.inbox], ['r'])
      assert.equal(await db.field('r', 'dueAt'), null)
      await db.turn(row, { seenInbox: 1, end: { ...SUSPEND, needs: 5, dueIn: DEADLINE_MS } })
      assert.ok(!(await db.isDue('r')))
      await db.commit(result('r'))
      assert.ok(await db.isDue('r'))
    }
  )

  check('a result that came before the suspension makes the run due at once', async (db) => {
    const row = await db.running('r')
    await db.turn(row, { opened: [dispatched(0)] })
    const end = { ...SUSPEND, dueIn: DEADLINE_MS }
    await db.commit(result('r'), turn(row, { end }))
    assert.ok(await db.isDue('r'))
    assert.deepEqual(await db.numbersOf('r'), [1])
  })

  check('says that nobody wants a result: the run has ended, or there is none', async (db) => {
    for (const end of [COMPLETE, FAIL, DIE]) await db.turn(await db.running(end.kind), { end })
    await sent(db)
    await db.commit(cancel('r'))
    for (const id of ['complete', 'fail', 'die', 'r', 'unknown']) {
      const { answers } = await db.commit(result(id))
      assert.deepEqual(answers, [{ type: 'received', done: false }], id)
    }
    assert.deepEqual(await db.waits('r'), [])
    assert.deepEqual(await db.inbox('r'), [])
  })

  check('a result takes its place among what one batch sends to a run', async (db) => {
    const row = await sent(db)
    const other = await db.running('other')
    const fail = { status: 'failed' as const, error: '""' }
    const { answers } = await db.commit(
      result('r', { outcome: fail }),
      turn(other, { records: [record(0)], end: RELEASE }),
      result('r'),
      turn(row, { end: RELEASE })
    )
    assert.deepEqual(
      answers.map(({ type }) => type),
      ['received', 'committed', 'received', 'lost']
    )
    const inbox = await db.inbox('r')
    const statuses = inbox.map((entry) => entry.kind === 'result' && entry.outcome.status)
    assert.deepEqual(statuses, ['failed', 'completed'])
    assert.deepEqual(await db.numbersOf('r'), [1, 2])
  })

  check('a taken result is gone', async (db) => {
    await sent(db)
    await db.commit(result('r'))
    const [row] = await db.claim()
    assert.ok(row)
    const records = [record(0, { kind: 'step', name: 'step 0' })]
    await db.turn(row, { records, closed: [0], seenInbox: 1, end: COMPLETE })
    assert.deepEqual(await db.inbox('r'), [])
    assert.deepEqual(await db.waits('r'), [])
  })

  check('a heartbeat puts off the time of the wait, and of nothing else', async (db) => {
    await sent(db, dispatched(0, { silenceMs: 90_000 }))
    const before = await db.row('r')
    await db.store.advanceClock(DEADLINE_MS - 10)
    assert.equal(await db.store.heartbeat(FIRST), true)
    const left = await untilDue(db)
    assert.ok(left > 89_000 && left <= 90_000, `${left} ms`)
    assert.deepEqual(await db.row('r'), before)
    await db.store.advanceClock(10)
    assert.deepEqual(await db.claimedIds(), ['r'])
    const [wait] = await db.waits('r')
    assert.ok(wait && wait.dueAt! > (await db.store.now()))
  })

  check('a heartbeat leaves a time limit as it is', async (db) => {
    await sent(db, dispatched(0, { silenceMs: null }))
    const [before] = await db.waits('r')
    await db.store.advanceClock(5_000)
    assert.equal(await db.store.heartbeat(FIRST), true)
    const [after] = await db.waits('r')
    assert.deepEqual(after, before)
  })

  check('a heartbeat of what nobody waits for says so and changes nothing', async (db) => {
    await sent(db, dispatched(0, { generation: 2, attempt: 2, attempts: 1 }))
    await sent(db, dispatched(0, { attempts: 1 }), 'between attempts')
    await sent(db, dispatched(0), 'ended')
    await db.commit(cancel('ended'))
    const before = await db.waits('r')
    const current = { ...FIRST, generation: 2, attempt: 2 }
    for (const attempt of [
      { ...current, generation: 1 },
      { ...current, attempt: 1 },
      { ...current, attempt: 3 },
      { ...current, seq: 1 },
      { ...current, runId: 'unknown' },
      { ...FIRST, runId: 'between attempts' },
      { ...FIRST, runId: 'ended' },
    ])
      assert.equal(await db.store.heartbeat(attempt), false, JSON.stringify(attempt))
    assert.deepEqual(await db.waits('r'), before)
    assert.equal(await db.store.heartbeat(current), true)
  })
}
