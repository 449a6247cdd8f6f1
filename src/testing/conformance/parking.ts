import assert from 'node:assert/strict'
import { suspectKey } from '../../core/name.ts'
import type { RunRow } from '../../core/run.ts'
import type { Scenario } from './scenario.ts'
import type { Check } from './suite.ts'
import {
  cancel,
  CLAIM_KEY,
  dispatched,
  DIE,
  newRun,
  record,
  requeue,
  result,
  sleep,
  SUSPEND,
  suspendOnEnds,
  waitForSignal,
} from './writes.ts'

const LEASE_MS = 30_000
const DEADLINE_MS = 100_000
const SUSPECTS = { claimKeys: [suspectKey(CLAIM_KEY)], limit: 1 }

/** A run of w1 that goes on beside a step that was sent to workers. */
async function beside(db: Scenario, id: string, wait = dispatched(0, { dueIn: DEADLINE_MS })) {
  const row = await db.running(id)
  await db.turn(row, { opened: [wait] })
  return row
}

/** Loses what the workers execute; `next` is a worker that can take it. */
async function lose(db: Scenario, next: string, suspectFrom: number | null = 2) {
  await db.store.advanceClock(LEASE_MS)
  const found = await db.store.recoverExpired({ suspectFrom })
  await db.registerWorker(next)
  return found
}

async function isParked(db: Scenario, id: string): Promise<boolean> {
  return (await db.field(id, 'parkedAt')) !== null
}

async function stateOf(db: Scenario, id: string) {
  const { status, owner, recoveryAttempts, parkedAt } = await db.row(id)
  return { status, owner, recoveryAttempts, isParked: parkedAt !== null }
}

/** Claims it at its due time for the worker that took it last. */
async function takeUp(db: Scenario, owner: string): Promise<RunRow> {
  await db.store.advanceClock(DEADLINE_MS)
  await db.store.renewWorker(owner)
  const [row] = await db.claim({ owner })
  assert.ok(row)
  return row
}

const PARKED = { status: 'suspended', owner: null, recoveryAttempts: 0, isParked: true }

export function parkingChecks(check: Check) {
  check(
    'a run lost beside a step in flight is parked, uncounted, until the step is due (DL-5)',
    async (db) => {
      const opened = [
        dispatched(0, { dueIn: DEADLINE_MS }),
        sleep(1, 500_000),
        waitForSignal(2, 'go'),
      ]
      const before = await db.running('r')
      await db.turn(before, { opened })
      await db.running('other')
      assert.deepEqual(await lose(db, 'w2'), { workers: 1, runs: 2 })
      assert.deepEqual(await stateOf(db, 'r'), PARKED)
      assert.deepEqual(await db.claimedIds({ owner: 'w2' }), ['other'])
      const row = await db.row('r')
      assert.equal(row.token, before.token + 1, 'a suspension of its owner is another')
      const [step] = await db.waits('r')
      assert.equal(row.dueAt, step?.dueAt)
      assert.equal(row.claimKey, CLAIM_KEY)
      const taken = await takeUp(db, 'w2')
      assert.deepEqual([taken.id, taken.recoveryAttempts], ['r', 0])
    }
  )

  check('a parked run is due with whatever of it is due first', async (db) => {
    const opened = [dispatched(0, { dueIn: DEADLINE_MS }), sleep(1, LEASE_MS + 500)]
    await db.turn(await db.running('r'), { opened })
    await lose(db, 'w2')
    const [, nap] = await db.waits('r')
    assert.equal(await db.field('r', 'dueAt'), nap?.dueAt)
  })

  check('a parked run of which nothing is due ever is due at once', async (db) => {
    await beside(db, 'r', dispatched(0, { dueIn: null }))
    await lose(db, 'w2')
    assert.deepEqual(await stateOf(db, 'r'), PARKED)
    assert.ok(await db.isDue('r'))
    assert.deepEqual(await db.claimedIds({ owner: 'w2' }), ['r'])
  })

  check(
    'a parked run is woken by the result, and at once by what it had not read (DL-5)',
    async (db) => {
      await beside(db, 'r')
      await beside(db, 'told')
      await db.commit(result('told'))
      await lose(db, 'w2')
      assert.deepEqual(await stateOf(db, 'told'), PARKED)
      assert.deepEqual([await db.isDue('r'), await db.isDue('told')], [false, true])
      await db.commit(result('r'))
      assert.ok(await db.isDue('r'))
      const taken = await db.claim({ owner: 'w2' })
      assert.deepEqual(taken.map(({ id }) => id).toSorted(), ['r', 'told'])
      assert.ok(taken.every(({ recoveryAttempts }) => recoveryAttempts === 0))
    }
  )

  check('a parked run wakes for any entry, whatever it needed before', async (db) => {
    const row = await beside(db, 'r')
    await db.turn(row, { end: { ...suspendOnEnds(3), dueIn: DEADLINE_MS } })
    await db.commit({ type: 'wake', runId: 'r' })
    await db.claim()
    await lose(db, 'w2')
    assert.equal(await db.field('r', 'wakeSeq'), null)
  })

  check('lost again with nothing recorded since, it is counted (DL-5)', async (db) => {
    await beside(db, 'r')
    await lose(db, 'w2')
    const again = await takeUp(db, 'w2')
    await db.turn(again, {
      opened: [dispatched(0, { id: 'd2', redispatches: 1, dueIn: DEADLINE_MS })],
    })
    await lose(db, 'w3')
    const lost = await db.row('r')
    assert.deepEqual([lost.status, lost.owner, await db.isDue('r')], ['running', 'w2', true])
    const [counted] = await db.claim({ owner: 'w3' })
    assert.equal(counted?.recoveryAttempts, 1)
    await lose(db, 'w4')
    const [suspect] = await db.claim({ owner: 'w4', ...SUSPECTS })
    assert.deepEqual([suspect?.id, suspect?.recoveryAttempts], ['r', 2])
  })

  check('a suspension alone does not make it new', async (db) => {
    await beside(db, 'r')
    await lose(db, 'w2')
    const again = await takeUp(db, 'w2')
    await db.turn(again, { opened: [sleep(1, 10)], end: { ...SUSPEND, dueIn: 10 } })
    assert.equal(await isParked(db, 'r'), true)
    await takeUp(db, 'w2')
    await lose(db, 'w3')
    const [counted] = await db.claim({ owner: 'w3' })
    assert.equal(counted?.recoveryAttempts, 1)
  })

  for (const [what, end] of [
    ['that goes on', { kind: 'continue' }],
    ['that suspends', { ...SUSPEND, dueIn: DEADLINE_MS }],
  ] as const)
    check(
      `once something is recorded, by a turn ${what}, it is parked again (DL-5)`,
      async (db) => {
        await beside(db, 'r')
        await lose(db, 'w2')
        const again = await takeUp(db, 'w2')
        await db.turn(again, { records: [record(1)], end })
        assert.equal(await isParked(db, 'r'), false)
        if (end.kind === 'suspend') await takeUp(db, 'w2')
        await lose(db, 'w3')
        assert.deepEqual(await stateOf(db, 'r'), PARKED)
      }
    )

  check('runs whose step is not in flight are counted as ever', async (db) => {
    await beside(db, 'between attempts', dispatched(0, { attempts: 1, dueIn: DEADLINE_MS }))
    await beside(db, 'asleep', sleep(0, DEADLINE_MS))
    const row = await beside(db, 'answered')
    await db.turn(row, { records: [record(0)], closed: [0] })
    await lose(db, 'w2')
    const taken = await db.claim({ owner: 'w2' })
    assert.deepEqual(
      taken.map(({ recoveryAttempts }) => recoveryAttempts),
      [1, 1, 1]
    )
  })

  check('a run that undoes its steps is counted though a step is in flight', async (db) => {
    await beside(db, 'r')
    await db.commit(cancel('r', { compensate: true }))
    await db.claim()
    await lose(db, 'w2')
    const [counted] = await db.claim({ owner: 'w2' })
    assert.deepEqual([counted?.phase, counted?.recoveryAttempts], ['unwinding', 1])
  })

  check(
    'parks by the same rule when a process starts under the name of the lost one',
    async (db) => {
      await beside(db, 'r')
      await db.running('other')
      const worker = { instance: 'w1 again', name: 'w1', leaseMs: LEASE_MS, descriptor: '{}' }
      assert.deepEqual(
        await db.store.registerWorker({ ...worker, takeOver: true, suspectFrom: 1 }),
        {
          takenOver: 2,
        }
      )
      assert.deepEqual(await stateOf(db, 'r'), PARKED)
      assert.ok(!(await db.isDue('r')))
      const [suspect] = await db.claim({ owner: 'w1 again', ...SUSPECTS })
      assert.equal(suspect?.id, 'other')
    }
  )

  check('a suspect that has gone on is parked, and stays a suspect', async (db) => {
    await beside(db, 'r')
    await lose(db, 'w2')
    await takeUp(db, 'w2')
    for (const instance of ['w3', 'w4']) {
      await lose(db, instance)
      await db.claim({ owner: instance, ...(instance === 'w4' ? SUSPECTS : {}) })
    }
    const suspect = await db.row('r')
    assert.deepEqual([suspect.claimKey, suspect.recoveryAttempts], [suspectKey(CLAIM_KEY), 2])
    await db.turn(suspect, { records: [record(1)] })
    await lose(db, 'w5')
    assert.deepEqual(await stateOf(db, 'r'), { ...PARKED, recoveryAttempts: 2 })
    assert.equal(await db.field('r', 'claimKey'), suspectKey(CLAIM_KEY))
  })

  check(
    'what a worker that does not count loses is due at once, and not parked (DL-10)',
    async (db) => {
      const worker = { instance: 'dev', name: 'dev', leaseMs: LEASE_MS, descriptor: '{}' }
      await db.store.registerWorker({ ...worker, isCounted: false, takeOver: false })
      await db.pending('r', newRun('r'))
      const [row] = await db.claim({ owner: 'dev' })
      assert.ok(row)
      await db.turn(row, { opened: [dispatched(0, { dueIn: DEADLINE_MS })] })
      await lose(db, 'w2')
      assert.deepEqual(await stateOf(db, 'r'), { ...PARKED, isParked: false })
      assert.ok(await db.isDue('r'))
    }
  )

  check('a requeued run is parked anew', async (db) => {
    await beside(db, 'r')
    await lose(db, 'w2')
    await db.turn(await takeUp(db, 'w2'), { end: DIE })
    await db.commit(requeue(await db.row('r')))
    assert.equal(await isParked(db, 'r'), false)
    const [again] = await db.claim({ owner: 'w2' })
    assert.ok(again)
    await db.turn(again, { opened: [dispatched(0, { dueIn: DEADLINE_MS })] })
    await lose(db, 'w3')
    assert.deepEqual(await stateOf(db, 'r'), PARKED)
  })
}
