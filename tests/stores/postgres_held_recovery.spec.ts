import { test } from '@japa/runner'
import type { StartWrite } from '../../src/core/change_set.ts'
import { suspectKey } from '../../src/core/name.ts'
import type { NewRun } from '../../src/core/run.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import {
  BLOCK,
  CLAIM_KEY,
  dispatched,
  newRun,
  newWorker,
  turn,
} from '../../src/testing/conformance/writes.ts'
import { DurableApp } from '../support/durable_app.ts'
import type { PostgresDatabase } from './postgres_database.ts'
import { Holder, untilWaiting } from './postgres_gate.ts'
import { usePostgres } from './postgres_group.ts'

const LEASE_MS = 30_000

/** Workers that are lost with two runs each, by what becomes of the runs. */
const KINDS: Record<
  string,
  { isCounted?: boolean; run?: Partial<NewRun>; opensStep?: boolean; hasSuspect?: boolean }
> = {
  'counted': {},
  'handed back': { isCounted: false },
  'parked': { opensStep: true },
  'suspect': { run: { claimKey: suspectKey(CLAIM_KEY) } },
  'beside a suspect': { hasSuspect: true },
}

function leased(id: string, leaseTo: string, overrides: Partial<NewRun> = {}): StartWrite {
  return { type: 'start', run: newRun(id, overrides), leaseTo }
}

test.group('PostgreSQL recovery beside rows that others hold', (group) => {
  let database: PostgresDatabase
  let store: LucidStore

  usePostgres(group, async (emptied) => {
    database = emptied
    store = await database.store()
  })

  function register(instance: string, options: { isCounted?: boolean } = {}) {
    return store.registerWorker(newWorker(instance, options))
  }

  async function holding(...ids: string[]): Promise<Holder> {
    const holder = await Holder.begin(database)
    for (const id of ids) await holder.lockRun(id)
    return holder
  }

  const recover = () => store.recoverExpired({ suspectFrom: 2 })

  async function stateOf(id: string) {
    const run = await store.getRun(id)
    if (!run) throw new Error(`There is no run "${id}"`)
    const { status, owner, claimKey, parkedAt, dueAt, recoveryAttempts } = run
    const isDue = dueAt !== null && dueAt <= (await store.now())
    return { status, owner, claimKey, isParked: parkedAt !== null, isDue, recoveryAttempts }
  }

  async function statusAndOwner(id: string) {
    const { status, owner } = await stateOf(id)
    return [status, owner]
  }

  async function namesOfWorkers(): Promise<string[]> {
    const rows = await store.listWorkers()
    return rows.map(({ name }) => name)
  }

  /** One of the two runs of a worker is called `held`, the other one `free`. */
  async function loseAll(): Promise<void> {
    for (const [kind, { isCounted = true, run, opensStep, hasSuspect }] of Object.entries(KINDS)) {
      await register(kind, { isCounted })
      const ids = [`${kind}, held`, `${kind}, free`]
      await store.commit(ids.map((id) => leased(id, kind, run)))
      if (opensStep)
        await store.commit(ids.map((id) => turn({ id, token: 1 }, { opened: [dispatched(0)] })))
      if (hasSuspect)
        await store.commit([leased('a suspect beside', kind, { claimKey: suspectKey(CLAIM_KEY) })])
    }
    await store.advanceClock(LEASE_MS)
  }

  test('all others are recovered, and what was held by the same rules once it is free', async ({
    assert,
  }) => {
    const kinds = Object.keys(KINDS)
    await loseAll()
    const holder = await holding(...kinds.map((kind) => `${kind}, held`))
    assert.deepEqual(await recover(), { workers: kinds.length, runs: kinds.length + 1 })
    for (const kind of kinds) {
      const { status, owner, isDue } = await stateOf(`${kind}, held`)
      assert.deepEqual([status, owner, isDue], ['running', kind, false], kind)
    }
    assert.deepEqual(await recover(), { workers: 0, runs: 0 })
    assert.deepEqual(await store.findStranded(), [])
    await holder.commit()
    assert.deepEqual(await recover(), { workers: 0, runs: kinds.length })
    assert.deepEqual(await recover(), { workers: 0, runs: 0 })
    for (const kind of kinds)
      assert.deepEqual(await stateOf(`${kind}, held`), await stateOf(`${kind}, free`), kind)

    await register('next')
    const claimed: string[] = []
    for (const claimKey of [CLAIM_KEY, suspectKey(CLAIM_KEY)]) {
      const rows = await store.claim({ owner: 'next', claimKeys: [claimKey], limit: 100 })
      claimed.push(...rows.map(({ id, recoveryAttempts }) => `${id}: ${recoveryAttempts}`))
    }
    assert.sameMembers(claimed, [
      ...['counted, held: 1', 'counted, free: 1'],
      ...['handed back, held: 0', 'handed back, free: 0'],
      ...['suspect, held: 1', 'suspect, free: 1'],
      ...['beside a suspect, held: 0', 'beside a suspect, free: 0', 'a suspect beside: 1'],
    ])
  })

  test('a lost worker is remembered for as long as one of its runs is held', async ({ assert }) => {
    await loseAll()
    const holder = await holding('handed back, held')
    await recover()
    await store.advanceClock(LEASE_MS)
    await recover()
    assert.include(await namesOfWorkers(), 'handed back')
    await holder.rollback()
    await recover()
    assert.deepEqual(await statusAndOwner('handed back, held'), ['suspended', null])
    assert.notInclude(await namesOfWorkers(), 'handed back')
  })

  test('a row is waited for in one pass, passed over in those after it, and waited for again when nothing is left', async ({
    assert,
  }) => {
    let tries = 0
    store = await database.store({ trace: (sql) => void (sql.startsWith('begin') && tries++) })
    /** What was found, and in how many tries: a second one follows a wait in vain. */
    async function found() {
      tries = 0
      return { ...(await recover()), tries }
    }
    await register('w1')
    await store.commit(['r1', 'r2'].map((id) => leased(id, 'w1')))
    await store.advanceClock(LEASE_MS)
    const holder = await holding('r1')
    assert.deepEqual(await found(), { workers: 1, runs: 1, tries: 2 })
    assert.deepEqual(await found(), { workers: 0, runs: 0, tries: 1 })
    await holder.rollback()
    assert.deepEqual(await found(), { workers: 0, runs: 1, tries: 1 })
    assert.deepEqual(await found(), { workers: 0, runs: 0, tries: 0 })

    await register('w2')
    await store.commit([leased('r3', 'w2')])
    await store.advanceClock(LEASE_MS)
    await holding('r3')
    assert.deepEqual(await found(), { workers: 1, runs: 0, tries: 2 })
  })

  test('a row that is let go while it is waited for is recovered in the same pass', async ({
    assert,
  }) => {
    store = await database.store({ lockMs: 10_000 })
    await register('w1')
    await store.commit([leased('r1', 'w1')])
    await store.advanceClock(LEASE_MS)
    const holder = await holding('r1')
    const recovered = recover()
    await untilWaiting(database, 1)
    await holder.rollback()
    assert.deepEqual(await recovered, { workers: 1, runs: 1 })
  })

  test('a worker that is removed hands back the others, and what was held is not counted', async ({
    assert,
  }) => {
    await register('w1')
    await store.commit(['r1', 'r2'].map((id) => leased(id, 'w1')))
    const holder = await holding('r1')
    await store.removeWorker('w1')
    assert.deepEqual(await statusAndOwner('r2'), ['suspended', null])
    assert.equal(await store.renewWorker('w1'), false)
    await holder.rollback()
    assert.deepEqual(await recover(), { workers: 0, runs: 1 })
    assert.deepEqual(await stateOf('r1'), await stateOf('r2'))
  })

  test('a worker starts though a run of its predecessor and a blocked one are held; they follow, counted once', async ({
    assert,
  }) => {
    await register('earlier')
    const app = new DurableApp({
      store,
      options: { leaseMs: 600, pollMs: 20, idlePollMs: 50 },
    })
    const workflow = app.engine.register('import', '1', async () => 'done')
    for (const id of ['held', 'free', 'blocked']) await app.engine.start(workflow, null, id)
    const stored = await store.getRun('held')
    const claimKeys = [stored?.claimKey ?? '']
    await store.claim({ owner: 'earlier', claimKeys, limit: 3 })
    await store.commit([turn({ id: 'blocked', token: 1 }, { end: { ...BLOCK, retryIn: 1_000 } })])
    const holder = await holding('held', 'blocked')
    try {
      await app.work({ name: 'earlier' })
      const free = await app.engine.waitForRun('free')
      assert.deepEqual([free.status, free.recoveryAttempts], ['completed', 1])
      assert.deepEqual(await statusAndOwner('held'), ['running', 'earlier'])
      await holder.commit()
      for (const [id, attempts] of [
        ['held', 1],
        ['blocked', 0],
      ] as const) {
        const run = await app.engine.waitForRun(id)
        assert.deepEqual([run.status, run.recoveryAttempts], ['completed', attempts])
      }
    } finally {
      await app.close()
    }
  })
})
