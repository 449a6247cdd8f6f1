import { test } from '@japa/runner'
import type { FlushNews } from '../../src/core/change_set.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import {
  CLAIM_KEY,
  COMPLETE,
  newRun,
  newWorker,
  parentLink,
  record,
  signal,
  start,
  startLeased,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForAll,
  waitForSignal,
} from '../../src/testing/conformance/writes.ts'
import type { PostgresDatabase } from './postgres_database.ts'
import { Holder } from './postgres_gate.ts'
import { usePostgres } from './postgres_group.ts'
import { PostgresProxy } from './postgres_proxy.ts'
import { connectTo } from './postgres_server.ts'

/** Of one stable name, whose runs each instance takes over. */
const NAMED = { name: 'a', takeOver: true }

type Told = Record<'due' | 'inbox' | 'ended', string[]> | 'anything'

/** What a store is told, one after the other. */
class Ear {
  #told: Told[] = []
  #waiting: ((told: Told) => void)[] = []

  constructor(store: LucidStore) {
    store.onForeignChange((news) => this.#hear(news))
  }

  next(): Promise<Told> {
    const told = this.#told.shift()
    if (told) return Promise.resolve(told)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** What was told before a notification that comes now. */
  async before(store: LucidStore, marker: string): Promise<Told[]> {
    await store.commit([start(marker, { workflow: marker })])
    const heard: Told[] = []
    for (;;) {
      const told = await this.next()
      if (told !== 'anything' && told.due.includes(newRun('', { workflow: marker }).claimKey))
        return heard
      heard.push(told)
    }
  }

  #hear(news: FlushNews | undefined) {
    const told: Told = news
      ? { due: [...news.due], inbox: [...news.inbox], ended: [...news.ended] }
      : 'anything'
    const waiting = this.#waiting.shift()
    if (waiting) waiting(told)
    else this.#told.push(told)
  }
}

test.group('PostgreSQL notifications', (group) => {
  let database: PostgresDatabase
  let one: LucidStore
  let other: LucidStore
  let ear: Ear

  usePostgres(group, async (created) => {
    database = created
    one = await database.store()
    other = await database.store()
    ear = new Ear(other)
    await one.registerWorker(newWorker('w1'))
    await other.registerWorker(newWorker('w2'))
  })

  test('a run that is due is told to others with its key, and not to ourselves', async ({
    assert,
  }) => {
    const own = new Ear(one)
    await one.commit([start('r1'), start('r2', { workflow: 'export' })])
    assert.deepEqual(await ear.next(), {
      ...{ due: [CLAIM_KEY, newRun('', { workflow: 'export' }).claimKey], inbox: [], ended: [] },
    })
    assert.deepEqual(await own.before(other, 'marker'), [])
  })

  test('nothing is told of what this process takes itself, unless it has more than it can take', async ({
    assert,
  }) => {
    const claim = { owner: 'w1', claimKeys: [CLAIM_KEY] }
    await one.claim({ ...claim, limit: 10 })
    await one.commit([start('r1'), start('r2')])
    await one.commit([startLeased('r3')])
    assert.deepEqual(await ear.before(one, 'first'), [])
    await one.claim({ ...claim, limit: 1 })
    await one.commit([start('r4')])
    assert.deepEqual(await ear.next(), { due: [CLAIM_KEY], inbox: [], ended: [] })
  })

  test('what was not told because this process takes it is told once it leaves some of it', async ({
    assert,
  }) => {
    const claim = { owner: 'w1', claimKeys: [CLAIM_KEY] }
    await one.claim({ ...claim, limit: 10 })
    await one.commit([start('r1'), start('r2'), start('r3')])
    await one.claim({ ...claim, limit: 2 })
    assert.equal(await one.nextDueIn([CLAIM_KEY]), 0)
    await one.nextDueIn([CLAIM_KEY])
    assert.deepEqual(await ear.before(one, 'first'), [{ due: [CLAIM_KEY], inbox: [], ended: [] }])
  })

  test('it is told without another claim when no slot is free for one', async ({ assert }) => {
    await one.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 })
    await one.commit([start('r1')])
    await one.nextDueIn([CLAIM_KEY])
    assert.deepEqual(await ear.next(), { due: [CLAIM_KEY], inbox: [], ended: [] })
    await one.commit([start('r2')])
    assert.deepEqual(await ear.next(), { due: [CLAIM_KEY], inbox: [], ended: [] })
  })

  test('nothing more is told of what this process has taken', async ({ assert }) => {
    const claim = { owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 }
    await one.claim(claim)
    await one.commit([start('r1')])
    await one.claim(claim)
    assert.isNull(await one.nextDueIn([CLAIM_KEY]))
    assert.deepEqual(await ear.before(one, 'first'), [])
  })

  test('the end of a run that others have started is told, of our own and of children not', async ({
    assert,
  }) => {
    const children = [{ run: newRun('c', { parent: parentLink('p') }), acknowledge: false }]
    await one.commit([startLeased('mine'), startLeased('p')])
    await other.commit([{ type: 'start', run: newRun('theirs'), leaseTo: 'w1' }])
    await one.commit([
      turn(
        { id: 'p', token: 1 },
        { opened: [waitForAll(0, children.length)], children, end: suspendOnEnds(1) }
      ),
    ])
    await one.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 })
    await ear.before(one, 'first')
    const end = (id: string) => turn({ id, token: 1 }, { records: [record(0)], end: COMPLETE })
    await one.commit([end('mine'), end('c')])
    await one.commit([end('theirs')])
    assert.deepEqual(await ear.before(one, 'second'), [{ due: [], inbox: [], ended: ['theirs'] }])
  })

  test('an entry for a run that another process executes is told, one for our own not', async ({
    assert,
  }) => {
    await one.commit([startLeased('mine'), { type: 'start', run: newRun('theirs'), leaseTo: 'w2' }])
    for (const id of ['mine', 'theirs'])
      await one.commit([turn({ id, token: 1 }, { opened: [waitForSignal(0, id)] })])
    await ear.before(one, 'first')
    await one.commit([signal('s1', 'mine')])
    await one.commit([signal('s2', 'theirs')])
    assert.deepEqual(await ear.before(one, 'second'), [{ due: [], inbox: ['theirs'], ended: [] }])
  })

  test('a parent that another process executes is told of the end of its child', async ({
    assert,
  }) => {
    const children = [{ run: newRun('c', { parent: parentLink('p') }), acknowledge: false }]
    await other.commit([{ type: 'start', run: newRun('p'), leaseTo: 'w2' }])
    await other.commit([
      turn({ id: 'p', token: 1 }, { opened: [waitForAll(0, children.length)], children }),
    ])
    await one.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 })
    await one.commit([turn({ id: 'c', token: 1 }, { end: COMPLETE })])
    assert.deepEqual(await ear.before(one, 'marker'), [{ due: [], inbox: ['p'], ended: [] }])
  })

  test('more than a notification can hold is told as anything', async ({ assert }) => {
    const ids = Array.from({ length: 300 }, (_, index) => `${'long'.repeat(10)} ${index}`)
    await other.commit(ids.map((id) => ({ type: 'start', run: newRun(id), leaseTo: 'w1' })))
    await one.commit(ids.map((id) => turn({ id, token: 1 }, { end: COMPLETE })))
    assert.equal(await ear.next(), 'anything')
    const waits = ids.slice(0, 200)
    await other.commit(waits.map((id) => ({ type: 'start', run: newRun(`w${id}`), leaseTo: 'w2' })))
    await other.commit(
      waits.map((id) => turn({ id: `w${id}`, token: 1 }, { opened: [waitForSignal(0, id)] }))
    )
    await one.commit(waits.map((id) => signal('s', id)))
    assert.equal(await ear.next(), 'anything')
  })

  test('runs of a lost worker are told to others when they become due (P9)', async ({ assert }) => {
    await one.registerWorker(newWorker('lost', { leaseMs: 1_000 }))
    await one.commit([{ type: 'start', run: newRun('r1'), leaseTo: 'lost' }])
    await one.registerWorker(newWorker('idle', { leaseMs: 1_000 }))
    await one.advanceClock(1_000)
    await ear.before(one, 'first')
    assert.deepEqual(await one.recoverExpired(), { workers: 2, runs: 1 })
    assert.deepEqual(await ear.before(one, 'second'), ['anything'])
    await one.registerWorker(newWorker('without runs', { leaseMs: 1_000 }))
    await one.advanceClock(1_000)
    assert.deepEqual(await one.recoverExpired(), { workers: 1, runs: 0 })
    assert.deepEqual(await ear.before(one, 'third'), [])
  })

  test('those of them that others hold are told once they have become due', async ({ assert }) => {
    await one.registerWorker(newWorker('lost', { leaseMs: 1_000 }))
    await one.commit([{ type: 'start', run: newRun('r1'), leaseTo: 'lost' }])
    const holder = await Holder.begin(database)
    await holder.lockRun('r1')
    await one.advanceClock(1_000)
    await ear.before(one, 'first')
    assert.deepEqual(await one.recoverExpired(), { workers: 1, runs: 0 })
    assert.deepEqual(await ear.before(one, 'second'), [])
    await holder.commit()
    assert.deepEqual(await one.recoverExpired(), { workers: 0, runs: 1 })
    assert.deepEqual(await ear.before(one, 'third'), ['anything'])
  })

  test('runs that a worker hands back, or takes over from its predecessor, are told to others', async ({
    assert,
  }) => {
    await one.commit([startLeased('r1')])
    await one.removeWorker('w1')
    assert.deepEqual(await ear.before(one, 'first'), ['anything'])
    await one.registerWorker(newWorker('a1', NAMED))
    await one.commit([{ type: 'start', run: newRun('r2'), leaseTo: 'a1' }])
    assert.deepEqual(await one.registerWorker(newWorker('a2', NAMED)), { takenOver: 1 })
    assert.deepEqual(await ear.before(one, 'second'), ['anything'])
  })

  test('a moved clock concerns this process too', async ({ assert }) => {
    const own = new Ear(one)
    await one.advanceClock(1)
    assert.equal(await own.next(), 'anything')
  })

  test('a run that waits for a signal is told when it becomes due', async ({ assert }) => {
    await one.commit([startLeased('r1')])
    await one.commit([
      turn({ id: 'r1', token: 1 }, { opened: [waitForSignal(0, 'go')], end: SUSPEND }),
    ])
    await one.commit([signal('s1', 'go')])
    assert.deepEqual(await ear.next(), { due: [CLAIM_KEY], inbox: [], ended: [] })
  })
})

test.group('PostgreSQL behind a transaction pooler', (group) => {
  let database: PostgresDatabase
  let proxy: PostgresProxy

  usePostgres(group, async (created) => {
    database = created
    proxy = await PostgresProxy.start(database.server, { isPooler: true })
    return () => proxy.stop()
  })

  /** An application with the pooler as its connection, and a direct one. */
  function application() {
    const db = connectTo(database.name, proxy.address)
    const config = connectTo(database.name).manager.get('app')?.config
    if (config) db.manager.add('direct', config)
    return db
  }

  async function work(store: LucidStore) {
    await store.registerWorker(newWorker('w1', NAMED))
    await store.commit([startLeased('r1'), start('r2')])
    await store.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 1 })
    const { answers } = await store.commit([
      turn({ id: 'r1', token: 1 }, { records: [record(0)], end: COMPLETE }),
      signal('s1', 'go'),
    ])
    return answers.map(({ type }) => type)
  }

  test('it works without notifications, names that are locked, and prepared statements, and says so', async ({
    assert,
  }) => {
    const warnings: string[] = []
    const db = application()
    const store = await database.store({ db, warn: (message) => warnings.push(message) })
    assert.lengthOf(warnings, 1)
    assert.match(warnings[0] ?? '', /stores\.lucid\(\{ direct/)
    assert.deepEqual(await work(store), ['committed', 'signalled'])
    assert.deepEqual([...proxy.names], [])
    assert.isNotNull(await store.lockName('a'))
    assert.isNotNull(await store.lockName('a'))
    const again = (instance: string) => store.registerWorker(newWorker(instance, NAMED))
    assert.deepEqual(await again('w2'), { takenOver: 0 })
    assert.isTrue(await store.renewWorker('w1'))
    await store.advanceClock(30_000)
    assert.deepEqual(await again('w3'), { takenOver: 1 })
    await store.close()
    await db.manager.closeAll()
  })

  test('a direct connection gives notifications and locks on names', async ({ assert }) => {
    const warnings: string[] = []
    const db = application()
    const options = { db, direct: 'direct', warn: (message: string) => warnings.push(message) }
    const store = await database.store(options)
    const ear = new Ear(store)
    const lock = await store.lockName('a')
    const other = await database.store(options)
    assert.isNull(await other.lockName('a'))
    assert.deepEqual(await work(store), ['committed', 'signalled'])
    assert.deepEqual([...proxy.names], [])
    await other.commit([start('r3')])
    assert.deepEqual(await ear.next(), { due: [CLAIM_KEY], inbox: [], ended: [] })
    assert.deepEqual(warnings, [])
    await lock?.release()
    await database.closeStores()
    await db.manager.closeAll()
  })

  test('settings of a session do not reach the other clients of the pooler', async ({ assert }) => {
    const statements: string[] = []
    const db = application()
    const store = await database.store({ db, warn: () => {}, trace: (sql) => statements.push(sql) })
    assert.deepEqual(await work(store), ['committed', 'signalled'])
    const setting = statements.filter(
      (sql) => /set_config\('enable_/.test(sql) && !/true/.test(sql)
    )
    assert.deepEqual(setting, [])
    await store.close()
    await db.manager.closeAll()
  })
})
