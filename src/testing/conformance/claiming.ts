import assert from 'node:assert/strict'
import { RUN_FORMAT } from '../../core/run.ts'
import type { Check } from './suite.ts'
import { CLAIM_KEY, claimKeyOf, RELEASE, sleep, start, SUSPEND } from './writes.ts'

const KEYS = [claimKeyOf('a'), claimKeyOf('b')]

export function claimingChecks(check: Check) {
  check('takes due runs under a new token', async (db) => {
    await db.pending('r1')
    const [row] = await db.claim()
    const { input, output, error, tags, attributes, ...stored } = await db.row('r1')
    assert.deepEqual(row, stored)
    assert.deepEqual([stored.status, stored.owner, stored.token], ['running', 'w1', 1])
    assert.deepEqual([stored.dueAt, stored.recoveryAttempts], [null, 0])
    assert.equal(stored.startedAt, stored.updatedAt)
    assert.deepEqual(await db.claimedIds(), [])
  })

  check('takes at most the limit, and nothing for a limit of 0 or without keys', async (db) => {
    await db.commit(...['r1', 'r2', 'r3'].map((id) => start(id)))
    assert.deepEqual(await db.claimedIds({ limit: 0 }), [])
    assert.deepEqual(await db.claimedIds({ claimKeys: [] }), [])
    const [first, second] = [await db.claim({ limit: 2 }), await db.claim({ limit: 2 })]
    assert.deepEqual([first.length, second.length], [2, 1])
  })

  check('takes them by priority, then by due time, whatever their key', async (db) => {
    const order = [
      ['late', 'a', 1],
      ['b first', 'b', 2],
      ['a second', 'a', 2],
      ['urgent', 'b', 0],
      ['idle', 'a', 3],
    ] as const
    for (const [id, workflow, priority] of order) {
      await db.pending(id, { workflow, priority })
      await db.store.advanceClock(10)
    }
    const all = ['urgent', 'late', 'b first', 'a second', 'idle']
    assert.deepEqual(await db.claimedIds({ claimKeys: KEYS, limit: 3 }), all.slice(0, 3))
    assert.deepEqual(await db.claimedIds({ claimKeys: KEYS, limit: 3 }), all.slice(3))
  })

  check('does not let many runs of one key hide an older one of another', async (db) => {
    await db.pending('old', { workflow: 'b' })
    await db.store.advanceClock(10)
    await db.commit(...['1', '2', '3', '4'].map((id) => start(id, { workflow: 'a' })))
    const taken = await db.claimedIds({ claimKeys: KEYS, limit: 2 })
    assert.equal(taken[0], 'old')
    assert.equal(taken.length, 2)
  })

  check('leaves runs of keys it was not asked for', async (db) => {
    await db.pending('known', { workflow: 'a' })
    await db.pending('unknown', { workflow: 'c' })
    assert.deepEqual(await db.claimedIds({ claimKeys: KEYS }), ['known'])
    const { status, token } = await db.row('unknown')
    assert.deepEqual([status, token], ['pending', 0])
    assert.equal(await db.store.nextDueIn(KEYS), null)
  })

  check('takes a run once when two connections claim at the same time', async (db) => {
    const other = await db.another()
    const ids = Array.from({ length: 40 }, (_, index) => `r${index}`)
    await db.commit(...ids.map((id) => start(id)))
    const request = { claimKeys: [CLAIM_KEY], limit: 30 }
    await db.registerWorker('w2')
    const [mine, theirs] = await Promise.all([
      db.store.claim({ ...request, owner: 'w1' }),
      other.claim({ ...request, owner: 'w2' }),
    ])
    const taken = [...mine, ...theirs].map(({ id }) => id)
    const rest = await db.claimedIds({ limit: 40 })
    assert.deepEqual([...taken, ...rest].toSorted(), ids.toSorted())
    assert.ok(mine.every(({ owner }) => owner === 'w1'))
    assert.ok(theirs.every(({ owner }) => owner === 'w2'))
  })

  check('offers blocked runs of the keys of a worker that starts before their time', async (db) => {
    const end = { kind: 'block', error: '{"v":null}', errorCode: 'x', retryIn: 60_000 } as const
    const mine = await db.running('mine', { workflow: 'a' })
    const other = await db.running('other', { workflow: 'c' })
    await db.turn(mine, { end })
    await db.turn(other, { end })
    assert.deepEqual(await db.claimedIds({ claimKeys: KEYS }), [])
    assert.equal(await db.store.offerBlocked(KEYS), 1)
    assert.equal(await db.store.offerBlocked(KEYS), 0)
    assert.deepEqual(await db.claimedIds({ claimKeys: [...KEYS, claimKeyOf('c')] }), ['mine'])
  })

  check('leaves runs of a format it does not know, and does not wake up for them', async (db) => {
    await db.pending('newer')
    await db.pending('same')
    await db.corrupt.setFormat('newer', RUN_FORMAT + 1)
    assert.deepEqual(await db.claimedIds(), ['same'])
    assert.equal(await db.store.nextDueIn([CLAIM_KEY]), null)
    assert.equal(await db.field('newer', 'status'), 'pending')
  })

  check('counts neither a first pickup, nor a wake, nor a handed back run (DL-10)', async (db) => {
    await db.pending('r1')
    for (const end of [RELEASE, SUSPEND, RELEASE]) {
      const [row] = await db.claim()
      assert.ok(row)
      const opened = end === SUSPEND ? [sleep(0, 10)] : []
      await db.turn(row, { opened, end: end === SUSPEND ? { ...SUSPEND, dueIn: 10 } : end })
      await db.store.advanceClock(10)
    }
    const [row] = await db.claim()
    assert.deepEqual([row?.recoveryAttempts, row?.token], [0, 4])
  })

  check('counts each pickup of a run that still reads running (DL-4)', async (db) => {
    await db.pending('r1')
    await db.claim()
    for (const attempt of [1, 2]) {
      await db.store.advanceClock(30_000)
      await db.store.recoverExpired()
      await db.registerWorker(`w1 again ${attempt}`)
      const [row] = await db.claim({ owner: `w1 again ${attempt}` })
      assert.deepEqual([row?.recoveryAttempts, row?.token], [attempt, attempt + 1])
      assert.equal(await db.field('r1', 'recoveryAttempts'), attempt)
    }
  })

  check('gives nothing to an instance whose lease was recovered', async (db) => {
    await db.store.advanceClock(30_000)
    await db.store.recoverExpired()
    await db.pending('r1')
    assert.deepEqual(await db.claimedIds({ owner: 'w1' }), [])
    await db.registerWorker('w2')
    assert.deepEqual(await db.claimedIds({ owner: 'w2' }), ['r1'])
  })
}
