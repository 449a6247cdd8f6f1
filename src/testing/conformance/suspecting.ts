import assert from 'node:assert/strict'
import { suspectKey } from '../../core/name.ts'
import type { Scenario } from './scenario.ts'
import type { Check } from './suite.ts'
import { CLAIM_KEY, COMPLETE, RELEASE, startLeased, turn } from './writes.ts'

const LEASE_MS = 30_000
const SUSPECTS = { claimKeys: [suspectKey(CLAIM_KEY)], limit: 1 }

/** Loses what the worker executes, and claims it for another one. */
async function loseAgain(db: Scenario, params: { instance: string; suspectFrom: number | null }) {
  await db.store.advanceClock(LEASE_MS)
  await db.store.recoverExpired({ suspectFrom: params.suspectFrom })
  await db.registerWorker(params.instance)
}

export function suspectingChecks(check: Check) {
  check('a run lost often enough is claimed by a key of its own (DL-11)', async (db) => {
    await db.running('once')
    await loseAgain(db, { instance: 'w2', suspectFrom: 2 })
    assert.equal(await db.field('once', 'claimKey'), CLAIM_KEY)
    assert.deepEqual(await db.claimedIds({ owner: 'w2', ...SUSPECTS }), [])
    assert.deepEqual(await db.claimedIds({ owner: 'w2' }), ['once'])
    await loseAgain(db, { instance: 'w3', suspectFrom: 2 })
    assert.equal(await db.field('once', 'claimKey'), suspectKey(CLAIM_KEY))
    assert.deepEqual(await db.claimedIds({ owner: 'w3' }), [])
    assert.equal(await db.store.nextDueIn([CLAIM_KEY]), null)
    assert.equal(await db.store.nextDueIn(SUSPECTS.claimKeys), 0)
    const [suspect] = await db.claim({ owner: 'w3', ...SUSPECTS })
    assert.deepEqual([suspect?.id, suspect?.recoveryAttempts], ['once', 2])
    const [standing] = await db.store.statusesOf(['once'])
    assert.equal(standing?.claimKey, suspectKey(CLAIM_KEY))
  })

  check('suspects are claimed one at a time and never fill the claims of others', async (db) => {
    for (const id of ['a', 'b', 'c']) await db.running(id)
    await loseAgain(db, { instance: 'w2', suspectFrom: 1 })
    await db.pending('healthy')
    assert.deepEqual(await db.claimedIds({ owner: 'w2' }), ['healthy'])
    const first = await db.claimedIds({ owner: 'w2', ...SUSPECTS })
    const second = await db.claimedIds({ owner: 'w2', ...SUSPECTS })
    assert.deepEqual([first.length, second.length], [1, 1])
    assert.notDeepEqual(first, second)
  })

  check('a suspect that ends its turn is none any more', async (db) => {
    await db.running('r')
    await loseAgain(db, { instance: 'w2', suspectFrom: 1 })
    const [suspect] = await db.claim({ owner: 'w2', ...SUSPECTS })
    assert.ok(suspect)
    await db.turn(suspect)
    assert.equal(await db.field('r', 'claimKey'), suspectKey(CLAIM_KEY))
    const { news } = await db.commit(turn(suspect, { end: RELEASE }))
    assert.deepEqual([...news.due], [CLAIM_KEY])
    assert.equal(await db.field('r', 'claimKey'), CLAIM_KEY)
    const [again] = await db.claim({ owner: 'w2' })
    assert.equal(again?.recoveryAttempts, 1)
  })

  check('a run that is passed on after the suspect beside it is not counted either', async (db) => {
    await db.running('poison')
    await loseAgain(db, { instance: 'w2', suspectFrom: 1 })
    assert.deepEqual(await db.claimedIds({ owner: 'w2', ...SUSPECTS }), ['poison'])
    await db.store.advanceClock(LEASE_MS)
    assert.deepEqual(await db.store.recoverExpired({ suspectFrom: 2 }), { workers: 1, runs: 1 })
    const { answers } = await db.commit({ ...startLeased('late'), leaseTo: 'w2' })
    assert.equal(answers[0]?.type, 'started')
    assert.deepEqual(await db.store.recoverExpired({ suspectFrom: 2 }), { workers: 0, runs: 1 })
    const { status, owner, claimKey } = await db.row('late')
    assert.deepEqual([status, owner, claimKey], ['suspended', null, suspectKey(CLAIM_KEY)])
  })

  check('nobody is a suspect unless a rule says so', async (db) => {
    await db.running('r')
    for (const instance of ['w2', 'w3']) {
      await loseAgain(db, { instance, suspectFrom: null })
      assert.deepEqual(await db.claimedIds({ owner: instance }), ['r'])
    }
    assert.equal(await db.field('r', 'recoveryAttempts'), 2)
  })

  check('taking over makes suspects by the rule of the new instance', async (db) => {
    await db.running('r')
    const worker = { instance: 'w1 again', name: 'w1', leaseMs: LEASE_MS, descriptor: '{}' }
    const rule = { takeOver: true, suspectFrom: 1 }
    assert.deepEqual(await db.store.registerWorker({ ...worker, ...rule }), { takenOver: 1 })
    const row = await db.row('r')
    assert.deepEqual([row.claimKey, row.status], [suspectKey(CLAIM_KEY), 'running'])
    const [suspect] = await db.claim({ owner: 'w1 again', ...SUSPECTS })
    assert.equal(suspect?.recoveryAttempts, 1)
    await db.turn(suspect, { end: COMPLETE })
  })

  for (const way of ['expire', 'are taken over'] as const)
    check(
      `runs of a worker that does not count are not counted when they ${way} (DL-10)`,
      async (db) => {
        const worker = { instance: 'dev', name: 'dev', leaseMs: LEASE_MS, descriptor: '{}' }
        await db.store.registerWorker({ ...worker, isCounted: false, takeOver: false })
        await db.pending('r')
        assert.deepEqual(await db.claimedIds({ owner: 'dev' }), ['r'])
        if (way === 'expire') {
          await db.store.advanceClock(LEASE_MS)
          await db.store.recoverExpired({ suspectFrom: 1 })
          await db.registerWorker('next')
        } else {
          const next = { ...worker, instance: 'next', takeOver: true, suspectFrom: 1 }
          assert.deepEqual(await db.store.registerWorker(next), { takenOver: 1 })
        }
        const lost = await db.row('r')
        assert.deepEqual(
          [lost.status, lost.owner, lost.claimKey, await db.isDue('r')],
          ['suspended', null, CLAIM_KEY, true]
        )
        const [claimed] = await db.claim({ owner: 'next' })
        assert.equal(claimed?.recoveryAttempts, 0)
        await db.turn(claimed, { end: COMPLETE })
      }
    )
}
