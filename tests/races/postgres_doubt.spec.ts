import { test } from '@japa/runner'
import type { ChangeSet } from '../../src/core/change_set.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import {
  COMPLETE,
  newRun,
  parentLink,
  record,
  start,
  startLeased,
  SUSPEND,
  turn,
} from '../../src/testing/conformance/writes.ts'
import { PostgresDatabase } from '../stores/postgres_database.ts'
import { Holder, settled } from '../stores/postgres_gate.ts'
import { PostgresProxy } from '../stores/postgres_proxy.ts'
import { connectTo, SERVER, SKIPPED } from '../stores/postgres_server.ts'

const LIMIT_MS = 50

test.group('PostgreSQL: an answer is lost, and then somebody is in the way', (group) => {
  let database: PostgresDatabase
  let proxy: PostgresProxy
  /** Through the proxy. */
  let store: LucidStore

  group.setup(async () => {
    if (SKIPPED !== null) return () => {}
    database = await PostgresDatabase.create()
    return () => database.remove()
  })
  group.each.setup(async () => {
    if (SKIPPED !== null) return () => {}
    proxy = await PostgresProxy.start(SERVER)
    const db = connectTo(database.name, proxy.address)
    store = await database.store({ db, busyLimitMs: LIMIT_MS })
    return async () => {
      await database.clear()
      await db.manager.closeAll()
      await proxy.stop()
    }
  })
  group.tap((each) => each.skip(SKIPPED !== null, SKIPPED ?? ''))

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
      await holder.run(
        `insert into durable_runs (id, workflow, version, claim_key, namespace, status, phase, priority, token,
          recovery_attempts, handoffs, inbox_seq, created_by, format, created_at, updated_at)
        values ('x', 'w', '1', 'k', 'default', 'pending', 'body', 1, 0, 0, 0, 0, 'somebody', 1, 1, 1)`
      )
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
