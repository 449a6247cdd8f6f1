import { test } from '@japa/runner'
import {
  CLAIM_KEY,
  COMPLETE,
  newRun,
  newWorker,
  record,
  signal,
  start,
  startLeased,
  turn,
} from '../../src/testing/conformance/writes.ts'
import { ForkedProcess } from '../support/forked_process.ts'
import { PostgresDatabase } from './postgres_database.ts'
import { settled } from './postgres_gate.ts'
import { findBinaries, PostgresInstance } from './postgres_instance.ts'

const BINARIES = await findBinaries()
const isRequired = Boolean(process.env.DURABLE_REQUIRE_SERVICES)
const isSkipped = BINARIES === null && !isRequired
const REASON = 'no programs of a PostgreSQL server are installed'

test.group('PostgreSQL server of its own', (group) => {
  let instance: PostgresInstance
  let database: PostgresDatabase

  group.setup(async () => {
    if (isSkipped) return () => {}
    instance = await PostgresInstance.start(BINARIES ?? '', [
      `log_statement = 'all'`,
      'fsync = off',
    ])
    return () => instance.remove()
  })
  group.each.setup(async () => {
    if (isSkipped) return () => {}
    database = await PostgresDatabase.create(instance.server)
    return () => database.remove()
  })
  group.tap((each) => each.skip(isSkipped, REASON).timeout(120_000))

  test('counts 2 statements for a one-step run that its starter executes alone, 1 for a further step, and 4 where another worker claims it', async ({
    assert,
  }) => {
    const store = await database.store()
    await store.registerWorker(newWorker('w1'))
    const step = (id: string, seq: number) => turn({ id, token: 1 }, { records: [record(seq)] })
    const end = (id: string, seq: number) =>
      turn({ id, token: 1 }, { records: [record(seq)], end: COMPLETE })
    const counted = async (marker: string, work: () => Promise<unknown>) => {
      await database.query(`select 'begin ${marker}'`)
      await work()
      await database.query(`select 'end ${marker}'`)
      const log = await instance.log()
      const [, after = ''] = log.split(`select 'begin ${marker}'`)
      const [within = ''] = after.split(`select 'end ${marker}'`)
      return within.match(/LOG: {2}(execute|statement)/g)?.slice(0, -1).length ?? 0
    }
    const alone = () => store.commit([startLeased('a')]).then(() => store.commit([end('a', 0)]))
    assert.equal(await counted('alone', alone), 2)
    await store.commit([startLeased('b')])
    assert.equal(await counted('step', () => store.commit([step('b', 0)])), 1)
    const claimed = async () => {
      await store.commit([start('c')])
      await store.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10 })
      await store.load([{ runId: 'c', resident: false, inboxAfter: 0 }])
      await store.commit([end('c', 0)])
    }
    assert.equal(await counted('claimed', claimed), 4)
    const { runs } = await store.listRuns({ status: 'completed' })
    assert.sameMembers(
      runs.map(({ id }) => id),
      ['a', 'c']
    )
  })

  test('64 processes fit into the 100 connections of a default server, all of them writing', async ({
    assert,
  }) => {
    const names = Array.from({ length: 64 }, (_, index) => `w${index}`)
    const stores = await Promise.all(
      names.map(() => database.store({ warn: () => {}, busyLimitMs: 60_000 }))
    )
    const written = await Promise.all(
      stores.map(async (store, index) => {
        const owner = `w${index}`
        await store.registerWorker(newWorker(owner))
        await store.commit([{ type: 'start', run: newRun(owner), leaseTo: owner }])
        const sent = await store.commit([signal(`s${index}`, owner)])
        const end = turn({ id: owner, token: 1 }, { records: [record(0)], end: COMPLETE })
        const [flush, isRenewed] = await Promise.all([
          store.commit([end, signal(`t${index}`, owner)]),
          store.renewWorker(owner),
        ])
        assert.isTrue(isRenewed)
        const answers = await Promise.all([...sent.answers, ...flush.answers].map(settled))
        return answers.map(({ type }) => type)
      })
    )
    assert.deepEqual(
      written,
      names.map(() => ['signalled', 'committed', 'signalled'])
    )
    const [kept] = await database.query('select count(*)::integer as signals from durable_signals')
    assert.deepEqual(kept, { signals: 128 })
  })

  for (const mode of ['fast', 'immediate'] as const) {
    test(`a restart (${mode}) under load loses nothing and records nothing twice (P9)`, async ({
      assert,
      cleanup,
    }) => {
      const script = new URL('./postgres_restless_writer.ts', import.meta.url)
      const { port } = instance.server
      const writers = ['w1', 'w2'].map(
        (name) => new ForkedProcess(script, [database.name, name, String(port)])
      )
      cleanup(async () => void (await Promise.all(writers.map((one) => one.kill()))))
      for (const one of writers) assert.equal(await one.heard(), 'ready')
      for (const one of writers) one.tell('go')
      for (const one of writers) assert.equal(await one.heard(), 'writing')
      await database.db.manager.closeAll()
      await instance.restart({ mode })
      for (const one of writers) one.tell('stop')
      const reports = await Promise.all(writers.map((one) => one.heard()))
      await Promise.all(writers.map((one) => one.ended()))
      for (const one of writers) assert.equal(one.exitCode, 0, one.output)
      const confirmed = (reports as string[][]).flat()
      assert.isAbove(confirmed.length, 10)
      const rows = await database.query<{ id: string; records: number; recoveries: number }>(
        `select id, recovery_attempts as recoveries,
          (select count(*)::integer from durable_history h where h.run_id = r.id) as records
        from durable_runs r where status = 'completed'`
      )
      const found = new Map(rows.map((row) => [row.id, row]))
      for (const id of confirmed)
        assert.deepEqual(found.get(id), { id, records: 3, recoveries: 0 }, id)
    })
  }
})
