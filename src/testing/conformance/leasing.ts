import assert from 'node:assert/strict'
import type { Check } from './suite.ts'
import { COMPLETE, dispatched, sleep, startLeased, SUSPEND, turn } from './writes.ts'

const LEASE_MS = 30_000

export function leasingChecks(check: Check) {
  check('lists a worker with the end of its lease', async (db) => {
    const [worker, ...others] = await db.store.listWorkers()
    assert.ok(worker)
    assert.deepEqual(others, [])
    const { startedAt, until, ...rest } = worker
    const descriptor = '{"name":"w1"}'
    assert.deepEqual(rest, { instance: 'w1', name: 'w1', lost: false, descriptor })
    // A database may read its clock for each of them.
    assert.ok(Math.abs(until - startedAt - LEASE_MS) < 1_000)
  })

  check('replaces what a worker announces of itself', async (db) => {
    await db.registerWorker('w2')
    await db.store.describeWorker('w2', '{"v":2}')
    await db.store.describeWorker('unknown', '{}')
    const workers = await db.store.listWorkers()
    const described = Object.fromEntries(workers.map((row) => [row.instance, row.descriptor]))
    assert.deepEqual(described, { w1: '{"name":"w1"}', w2: '{"v":2}' })
  })

  check('makes the runs of an expired worker due, still running (P4)', async (db) => {
    const row = await db.running('r1')
    await db.turn(await db.running('asleep'), {
      opened: [sleep(0, 90_000)],
      end: { ...SUSPEND, dueIn: 90_000 },
    })
    await db.store.advanceClock(LEASE_MS)
    assert.deepEqual(await db.store.recoverExpired(), { workers: 1, runs: 1 })
    const lost = await db.row('r1')
    assert.deepEqual([lost.status, lost.owner, lost.token], ['running', 'w1', row.token])
    assert.ok(await db.isDue('r1'))
    const [worker] = await db.store.listWorkers()
    assert.equal(worker?.lost, true)
    assert.equal(await db.field('asleep', 'status'), 'suspended')
    assert.ok(!(await db.isDue('asleep')))
    assert.deepEqual(await db.store.recoverExpired(), { workers: 0, runs: 0 })
  })

  check('recovers nobody whose lease lasts', async (db) => {
    await db.running('r1')
    await db.store.advanceClock(LEASE_MS - 1_000)
    assert.deepEqual(await db.store.recoverExpired(), { workers: 0, runs: 0 })
    assert.equal(await db.store.renewWorker('w1'), true)
    await db.store.advanceClock(LEASE_MS - 1_000)
    assert.deepEqual(await db.store.recoverExpired(), { workers: 0, runs: 0 })
    assert.equal(await db.field('r1', 'dueAt'), null)
  })

  check('renews a lease that has expired and was not recovered (P9)', async (db) => {
    await db.running('r1')
    await db.store.advanceClock(10 * LEASE_MS)
    assert.equal(await db.store.renewWorker('w1'), true)
    assert.deepEqual(await db.store.recoverExpired(), { workers: 0, runs: 0 })
    assert.equal(await db.field('r1', 'dueAt'), null)
  })

  check('refuses to renew a worker that was recovered, or is unknown', async (db) => {
    await db.store.advanceClock(LEASE_MS)
    await db.store.recoverExpired()
    assert.equal(await db.store.renewWorker('w1'), false)
    assert.equal(await db.store.renewWorker('unknown'), false)
  })

  check('gives runs to live workers only, and takes no instance twice (P1)', async (db) => {
    await db.pending('r1')
    const again = (instance: string) => assert.rejects(() => db.registerWorker(instance))
    assert.deepEqual(await db.claimedIds({ owner: 'unknown' }), [])
    await again('w1')
    await db.store.advanceClock(LEASE_MS)
    await db.store.recoverExpired()
    assert.deepEqual(await db.claimedIds({ owner: 'w1' }), [])
    await again('w1')
    assert.equal(await db.store.renewWorker('w1'), false)
    assert.equal(await db.field('r1', 'owner'), null)
  })

  check(
    'forgets a lost worker a lease after its own has ended, but none that a run names',
    async (db) => {
      const names = async () => {
        const workers = await db.store.listWorkers()
        return workers.map(({ instance }) => instance)
      }
      await db.running('r1')
      await db.store.advanceClock(LEASE_MS)
      await db.store.recoverExpired()
      await db.store.advanceClock(LEASE_MS - 1_000)
      assert.deepEqual(await db.store.recoverExpired(), { workers: 0, runs: 0 })
      await db.registerWorker('w2')
      assert.deepEqual(await names(), ['w1', 'w2'])
      await db.store.advanceClock(1_000)
      await db.store.recoverExpired()
      assert.deepEqual(await names(), ['w1', 'w2'])
      const [row] = await db.claim({ owner: 'w2' })
      assert.equal(row?.recoveryAttempts, 1)
      assert.deepEqual(await db.store.recoverExpired(), { workers: 0, runs: 0 })
      assert.deepEqual(await names(), ['w2'])
      await db.pending('r2')
      assert.equal(await db.store.renewWorker('w1'), false)
      assert.deepEqual(await db.claimedIds({ owner: 'w1' }), [])
    }
  )

  check('hands back what an instance without a row holds, uncounted (P4)', async (db) => {
    await db.store.removeWorker('w1')
    await db.running('late')
    const beside = await db.running('beside a step')
    await db.turn(beside, { opened: [dispatched(0, { dueIn: 100_000 })] })
    const stranded = await db.store.findStranded()
    assert.deepEqual(stranded.map(({ runId, reason }) => [runId, reason]).toSorted(), [
      ['beside a step', 'unknown_owner'],
      ['late', 'unknown_owner'],
    ])
    assert.deepEqual(await db.store.recoverExpired({ suspectFrom: 1 }), { workers: 0, runs: 2 })
    assert.deepEqual(await db.store.findStranded(), [])
    await db.registerWorker('w2')
    const taken = await db.claim({ owner: 'w2' })
    assert.deepEqual(taken.map(({ id, recoveryAttempts }) => [id, recoveryAttempts]).toSorted(), [
      ['beside a step', 0],
      ['late', 0],
    ])
    assert.deepEqual(await db.store.recoverExpired(), { workers: 0, runs: 0 })
  })

  check('recovers the runs of the expired worker only', async (db) => {
    await db.running('r1')
    await db.store.advanceClock(LEASE_MS / 2)
    await db.registerWorker('w2')
    await db.pending('r2')
    await db.claim({ owner: 'w2' })
    await db.store.advanceClock(LEASE_MS / 2)
    assert.deepEqual(await db.store.recoverExpired(), { workers: 1, runs: 1 })
    assert.deepEqual([await db.isDue('r1'), await db.isDue('r2')], [true, false])
  })

  check('recovers each run once when two connections do it at the same time', async (db) => {
    const other = await db.another()
    await db.commit(...['r1', 'r2', 'r3'].map((id) => startLeased(id)))
    await db.store.advanceClock(LEASE_MS)
    const [mine, theirs] = await Promise.all([db.store.recoverExpired(), other.recoverExpired()])
    assert.equal(mine.workers + theirs.workers, 1)
    assert.equal(mine.runs + theirs.runs, 3)
  })

  check('lets the former owner end a run that nobody has claimed since', async (db) => {
    const row = await db.running('r1')
    await db.store.advanceClock(LEASE_MS)
    await db.store.recoverExpired()
    assert.deepEqual(await db.answers(turn(row, { end: COMPLETE })), ['committed'])
    await db.registerWorker('w2')
    assert.deepEqual(await db.claimedIds({ owner: 'w2' }), [])
  })

  check('recovers a run too that was leased to an instance already lost', async (db) => {
    await db.store.advanceClock(LEASE_MS)
    await db.store.recoverExpired()
    await db.running('late')
    assert.deepEqual(await db.store.recoverExpired(), { workers: 0, runs: 1 })
    assert.ok(await db.isDue('late'))
  })

  check('takes the runs of earlier instances of a name over at once', async (db) => {
    await db.registerWorker('a1', { name: 'host:1' })
    await db.pending('mine')
    await db.claim({ owner: 'a1' })
    await db.running('of another name')
    assert.deepEqual(await db.registerWorker('a2', { name: 'host:1', takeOver: true }), {
      takenOver: 1,
    })
    assert.equal(await db.store.renewWorker('a1'), false)
    assert.equal(await db.store.renewWorker('w1'), true)
    assert.equal(await db.store.renewWorker('a2'), true)
    const [taken, ...others] = await db.claim({ owner: 'a2' })
    assert.deepEqual([taken?.id, taken?.recoveryAttempts, others], ['mine', 1, []])
  })

  check('takes nothing over unless it is asked to', async (db) => {
    await db.running('r1')
    assert.deepEqual(await db.registerWorker('w2', { name: 'w1' }), { takenOver: 0 })
    assert.equal(await db.store.renewWorker('w1'), true)
    assert.ok(!(await db.isDue('r1')))
    const none = await db.registerWorker('w3', { name: 'nobody', takeOver: true })
    assert.deepEqual(none, { takenOver: 0 })
  })

  check('removes a worker that has handed its runs back', async (db) => {
    await db.store.removeWorker('w1')
    assert.deepEqual(await db.store.listWorkers(), [])
    assert.equal(await db.store.renewWorker('w1'), false)
    await db.store.removeWorker('w1')
  })

  check('says which runs an instance holds', async (db) => {
    const row = await db.running('r1')
    await db.registerWorker('w2')
    await db.pending('r2')
    await db.claim({ owner: 'w2' })
    await db.waiting('asleep', 'go')
    const { claimKey, status, phase, token, errorCode } = row
    assert.deepEqual(await db.store.heldBy('w1'), [
      { runId: 'r1', claimKey, status, phase, token, errorCode },
    ])
    await db.store.advanceClock(LEASE_MS)
    await db.store.recoverExpired()
    assert.deepEqual(await db.store.heldBy('w1'), [])
    assert.deepEqual(await db.store.heldBy('unknown'), [])
  })

  check('makes what a worker still holds due when it is removed, uncounted (P4)', async (db) => {
    const { token } = await db.running('r1')
    await db.store.removeWorker('w1')
    assert.ok(await db.isDue('r1'))
    assert.equal(await db.field('r1', 'token'), token + 1)
    await db.registerWorker('w2')
    const [row] = await db.claim({ owner: 'w2' })
    assert.deepEqual([row?.id, row?.recoveryAttempts], ['r1', 0])
  })

  check('gives a name to one connection at a time', async (db) => {
    const other = await db.another()
    const lock = await db.store.lockName('host:1')
    assert.ok(lock)
    assert.equal(await other.lockName('host:1'), null)
    const second = await other.lockName('host:2')
    assert.ok(second)
    await lock.release()
    await lock.release()
    const taken = await other.lockName('host:1')
    assert.ok(taken)
    await lock.release()
    assert.equal(await db.store.lockName('host:1'), null)
    await taken.release()
    await second.release()
  })

  check('frees the names of a connection that is closed', async (db) => {
    const other = await db.another()
    assert.ok(await other.lockName('host:1'))
    await other.close()
    await other.close()
    const lock = await db.store.lockName('host:1')
    assert.ok(lock)
    await lock.release()
  })

  check('has one clock for every connection (P7)', async (db) => {
    const other = await db.another()
    const before = await db.store.now()
    await other.advanceClock(3_600_000)
    const passed = (await db.store.now()) - before
    assert.ok(passed >= 3_600_000 && passed < 3_700_000, `${passed} ms`)
    await db.running('r1')
    assert.deepEqual(await db.store.recoverExpired(), { workers: 1, runs: 1 })
  })
}
