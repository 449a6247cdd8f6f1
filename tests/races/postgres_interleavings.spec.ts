import { test } from '@japa/runner'
import type { ChangeSet, Write } from '../../src/core/change_set.ts'
import type { RunRow } from '../../src/core/run.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { lockTokens, stripesOf } from '../../src/stores/lucid/postgres/token_locks.ts'
import {
  CLAIM_KEY,
  claimKeyOf,
  COMPLETE,
  newRun,
  newWorker,
  parentLink,
  record,
  signal,
  signalSend,
  start,
  startLeased,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForAll,
  waitForSignal,
} from '../../src/testing/conformance/writes.ts'
import type { PostgresDatabase } from '../stores/postgres_database.ts'
import { deadlocks, Holder, untilWaiting } from '../stores/postgres_gate.ts'
import { usePostgres } from '../stores/postgres_group.ts'

test.group('PostgreSQL interleavings, forced', (group) => {
  let database: PostgresDatabase
  let one: LucidStore
  let other: LucidStore

  usePostgres(group, async (created) => {
    database = created
    one = await database.store()
    other = await database.store()
    for (const [store, instance] of [
      [one, 'w1'],
      [other, 'w2'],
    ] as const)
      await store.registerWorker(newWorker(instance))
  })

  async function held(run: string): Promise<Holder> {
    const holder = await Holder.begin(database)
    await holder.lockRun(run)
    return holder
  }

  /** A parent with `count` running children, suspended on all of them. */
  async function family(id: string, count: number): Promise<RunRow[]> {
    await one.commit([startLeased(id)])
    const children = Array.from({ length: count }, (_, index) => ({
      run: newRun(`${id}.${index}`, { workflow: id, parent: parentLink(id, { index }) }),
      acknowledge: false,
    }))
    await one.commit([
      turn(
        { id, token: 1 },
        { opened: [waitForAll(0, children.length)], children, end: suspendOnEnds(count) }
      ),
    ])
    return one.claim({ owner: 'w1', claimKeys: [claimKeyOf(id)], limit: count })
  }

  function end(row: RunRow | undefined): ChangeSet {
    if (!row) throw new Error('There is no such run')
    return turn(row, { records: [record(0)], end: COMPLETE })
  }

  async function rowOf(id: string) {
    const row = await one.getRun(id)
    if (!row) throw new Error(`There is no run ${id}`)
    return row
  }

  async function isDue(id: string): Promise<boolean> {
    const { dueAt } = await rowOf(id)
    return dueAt !== null && dueAt <= (await one.now())
  }

  async function inboxOf(runId: string): Promise<number[]> {
    const [loaded] = await one.load([{ runId, resident: true, inboxAfter: 0 }])
    return (loaded?.inbox ?? []).map(({ no }) => no)
  }

  /** Sends two writes so that the second waits behind the first, and lets both go. */
  async function inOrder(holder: Holder, writes: readonly [LucidStore, Write][]) {
    const flushes = []
    for (const [index, [store, write]] of writes.entries()) {
      flushes.push(store.commit([write]))
      await untilWaiting(database, index + 1)
    }
    await holder.rollback()
    const answers = await Promise.all(flushes)
    return answers.map((flush) => flush.answers[0]?.type)
  }

  test('a commit that waited behind a claim is lost, with all it contains (P1)', async ({
    assert,
  }) => {
    for (const touchesTokens of [false, true]) {
      const id = touchesTokens ? 'with signals' : 'without'
      await one.commit([startLeased(id)])
      const claim = await Holder.begin(database)
      await claim.run(`update durable_runs set token = token + 1, owner = 'w2' where id = $1`, [id])
      const signals = touchesTokens ? [signalSend('s1', 'go')] : []
      const commit = one.commit([
        turn({ id, token: 1 }, { records: [record(0)], signals, end: COMPLETE }),
        startLeased(`beside ${id}`),
      ])
      await untilWaiting(database, 1)
      await claim.commit()
      const { answers } = await commit
      assert.deepEqual(
        answers.map(({ type }) => type),
        ['lost', 'started']
      )
      const row = await rowOf(id)
      assert.deepEqual([row.status, row.token, row.output], ['running', 2, null])
      const history = await one.getHistory(id)
      assert.deepEqual(history?.records, [])
      const sent = await one.commit([signal('s1', 'go')])
      assert.deepEqual(sent.answers, [{ type: 'signalled', delivered: false }])
    }
  })

  test('a claim passes over a run that is being written, and takes the others', async ({
    assert,
  }) => {
    await one.commit(['a', 'b', 'c'].map((id) => startLeased(id)))
    await one.advanceClock(30_000)
    await one.recoverExpired()
    await one.registerWorker(newWorker('w3'))
    const holder = await held('b')
    const commit = one.commit([
      turn({ id: 'a', token: 1 }, { end: COMPLETE }),
      turn({ id: 'b', token: 1 }, { end: COMPLETE }),
    ])
    await untilWaiting(database, 1)
    const claimed = await other.claim({ owner: 'w3', claimKeys: [CLAIM_KEY], limit: 10 })
    assert.deepEqual(
      claimed.map(({ id }) => id),
      ['c']
    )
    await holder.rollback()
    const { answers } = await commit
    assert.deepEqual(
      answers.map(({ type }) => type),
      ['committed', 'committed']
    )
    assert.deepEqual(await other.claim({ owner: 'w3', claimKeys: [CLAIM_KEY], limit: 10 }), [])
  })

  test('the last of two children that end in two processes at once wakes the parent', async ({
    assert,
  }) => {
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const id = `parent ${order.join(' ')}`
      const children = await family(id, 2)
      const holder = await held(id)
      const types = await inOrder(holder, [
        [one, end(children[order[0] ?? 0])],
        [other, end(children[order[1] ?? 0])],
      ])
      assert.deepEqual(types, ['committed', 'committed'])
      assert.isTrue(await isDue(id))
      assert.deepEqual(await inboxOf(id), [1, 2])
      const row = await rowOf(id)
      assert.equal(row.inboxSeq, 2)
    }
    assert.deepEqual(await one.findStranded(), [])
  })

  test('a wake beside a suspension in another process is kept, in either order', async ({
    assert,
  }) => {
    for (const isChildFirst of [true, false]) {
      const id = isChildFirst ? 'child first' : 'suspension first'
      const [child] = await family(id, 1)
      await one.advanceClock(1)
      await database.query(`update durable_runs set status = 'running', owner = 'w1', wake_seq = null
        where id = '${id}'`)
      const writes: [LucidStore, Write][] = [
        [one, end(child)],
        [other, turn({ id, token: 1 }, { end: suspendOnEnds(1) })],
      ]
      const holder = await held(id)
      const types = await inOrder(holder, isChildFirst ? writes : writes.toReversed())
      assert.deepEqual(types, ['committed', 'committed'])
      assert.isTrue(await isDue(id), id)
      assert.deepEqual(await inboxOf(id), [1])
    }
    assert.deepEqual(await one.findStranded(), [])
  })

  test('a signal and its wait in two processes meet, in either order', async ({ assert }) => {
    for (const isSignalFirst of [true, false]) {
      const token = isSignalFirst ? 'signal first' : 'wait first'
      await one.commit([startLeased(token)])
      const holder = await Holder.begin(database)
      const { sql, values } = lockTokens(stripesOf([token]))
      await holder.run(sql.replace('?', '$1'), [...values])
      const writes: [LucidStore, Write][] = [
        [other, signal('s1', token)],
        [one, turn({ id: token, token: 1 }, { opened: [waitForSignal(0, token)], end: SUSPEND })],
      ]
      await inOrder(holder, isSignalFirst ? writes : writes.toReversed())
      assert.isTrue(await isDue(token), token)
      assert.deepEqual(await inboxOf(token), [1])
    }
    assert.deepEqual(await one.findStranded(), [])
  })

  test('a signal that waits for the row of its receiver is not given to a wait that closes meanwhile', async ({
    assert,
  }) => {
    for (const id of ['first', 'second'])
      await one
        .commit([startLeased(id)])
        .then(() =>
          one.commit([
            turn({ id, token: 1 }, { opened: [waitForSignal(0, 'go')], end: { kind: 'continue' } }),
          ])
        )
    const holder = await held('first')
    const types = await inOrder(holder, [
      [one, turn({ id: 'first', token: 1 }, { closed: [0] })],
      [other, signal('s1', 'go')],
    ])
    assert.deepEqual(types, ['committed', 'signalled'])
    assert.deepEqual([await inboxOf('first'), await inboxOf('second')], [[], [1]])
  })

  test('two batches that touch the same runs in opposite order do not deadlock', async ({
    assert,
  }) => {
    const [a, z] = [await family('a', 2), await family('z', 2)]
    const before = await deadlocks(database)
    const holder = await held('a')
    const flushes = [one.commit([end(z[0]), end(a[0])]), other.commit([end(a[1]), end(z[1])])]
    await untilWaiting(database, 2)
    await holder.rollback()
    for (const { answers } of await Promise.all(flushes))
      assert.isTrue(answers.every(({ type }) => type === 'committed'))
    assert.deepEqual(
      [await inboxOf('a'), await inboxOf('z')],
      [
        [1, 2],
        [1, 2],
      ]
    )
    assert.isTrue((await isDue('a')) && (await isDue('z')))
    assert.equal(await deadlocks(database), before)
  })

  test('a run that appears while a batch is being folded is found, and not refused', async ({
    assert,
  }) => {
    const id = 'appears'
    const third = await database.store()
    await one.commit([startLeased('parent')])
    const insert = await Holder.begin(database)
    await insert.insertRun(id)
    const children = [{ run: newRun(id, { parent: parentLink('parent') }), acknowledge: false }]
    const commits = [
      one.commit([
        turn(
          { id: 'parent', token: 1 },
          { opened: [waitForAll(0, children.length)], children, end: suspendOnEnds(1) }
        ),
      ]),
      other.commit([start(id)]),
      third.commit([start(id, { timeoutMs: 60_000 })]),
    ]
    await untilWaiting(database, 3)
    await insert.commit()
    const [turned, ...started] = await Promise.all(commits)
    assert.equal(turned?.answers[0]?.type, 'committed')
    for (const { answers } of started) {
      const [answer] = answers
      assert.isTrue(answer?.type === 'started' && !answer.created)
    }
    assert.deepEqual(await inboxOf('parent'), [1])
    await database.query(`delete from durable_runs where id = '${id}'`)
  })
})
