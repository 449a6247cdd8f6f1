import { test } from '@japa/runner'
import type { ChangeSet } from '../../src/core/change_set.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import {
  COMPLETE,
  newRun,
  newWorker,
  parentLink,
  record,
  start,
  startLeased,
  SUSPEND,
  turn,
} from '../../src/testing/conformance/writes.ts'
import type { PostgresDatabase } from '../stores/postgres_database.ts'
import { Holder, settled } from '../stores/postgres_gate.ts'
import { usePostgres } from '../stores/postgres_group.ts'
import type { PostgresProxy } from '../stores/postgres_proxy.ts'
import { proxiedStore } from '../stores/proxied_store.ts'

const LIMIT_MS = 50

test.group('PostgreSQL: an answer is lost, and then somebody is in the way', (group) => {
  let database: PostgresDatabase
  let proxy: PostgresProxy
  /** Through the proxy. */
  let store: LucidStore

  usePostgres(group, async (created) => {
    database = created
    const proxied = await proxiedStore(database, { busyLimitMs: LIMIT_MS })
    ;({ proxy, store } = proxied)
    return () => proxied.end()
  })

  /** Commits a write that is applied; of the answer nobody hears, and the server is away for longer than it is waited for. */
  async function applyUnheard(write: ChangeSet): Promise<void> {
    const lost = proxy.loseAnswer('SELECT')
    const committed = store.commit([write])
    await lost
    proxy.down()
    await committed.then(
      () => Promise.reject(new Error('The answer was heard')),
      () => undefined
    )
  }

  test('an end that never arrived is not taken for applied because others have handed the run back (P1)', async ({
    assert,
  }) => {
    await store.registerWorker(newWorker('w1', { isCounted: false }))
    await store.commit([startLeased('r')])
    const write = turn({ id: 'r', token: 1 }, { end: COMPLETE })
    proxy.down()
    await assert.rejects(() => store.commit([write]))
    const other = await database.store()
    await other.advanceClock(60_000)
    const found = await other.recoverExpired()
    assert.equal(found.runs, 1)
    proxy.up()
    const { answers } = await store.commit([write])
    assert.deepEqual(
      answers.map(({ type }) => type),
      ['lost']
    )
    const run = await other.getRun('r')
    assert.deepEqual([run?.status, run?.output], ['suspended', null])
  })

  const ENDS = { 'goes on': { kind: 'continue' }, 'suspends': SUSPEND, 'ends': COMPLETE } as const
  for (const [what, end] of Object.entries(ENDS)) {
    const write = turn(
      { id: 'r', token: 1 },
      {
        records: [record(0)],
        children: [{ run: newRun('c', { parent: parentLink('r') }), acknowledge: false }],
        end,
      }
    )

    test(`a turn that ${what} is found to be applied while its row is held (P9)`, async ({
      assert,
    }) => {
      await store.commit([startLeased('r')])
      await applyUnheard(write)
      const holder = await Holder.begin(database)
      await holder.lockRun('r')
      proxy.up()
      const { answers } = await store.commit([write])
      await holder.rollback()
      assert.deepEqual(
        answers.map(({ type }) => type),
        ['committed']
      )
    })

    test(`a turn that ${what} is found to be applied beside a start whose id is held (P9)`, async ({
      assert,
    }) => {
      await store.commit([startLeased('r')])
      await applyUnheard(write)
      const holder = await Holder.begin(database)
      await holder.insertRun('x')
      proxy.up()
      const { answers } = await store.commit([write, start('x')])
      await holder.rollback()
      const later = await Promise.all(answers.map(settled))
      assert.deepEqual(
        later.map(({ type }) => type),
        ['committed', 'started']
      )
      const history = await store.getHistory('r')
      assert.lengthOf(history?.records ?? [], 1)
    })
  }
})
