import { test } from '@japa/runner'
import type { Write } from '../../src/core/change_set.ts'
import { fusedPlan } from '../../src/stores/lucid/postgres/fused_plan.ts'
import { PostgresDialect } from '../../src/stores/lucid/postgres/dialect.ts'
import { tableNames } from '../../src/stores/lucid/schema.ts'
import { Leases } from '../../src/stores/lucid/leases.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { CLAIM_KEY, newWorker } from '../../src/testing/conformance/writes.ts'
import { BatchWriter } from '../core/batch_writer.ts'
import { RandomSource } from '../core/random_source.ts'
import { setClock, stopClock } from './postgres_clock.ts'
import { PostgresDatabase } from './postgres_database.ts'
import { SKIPPED } from './postgres_server.ts'

const SEEDS = 12
const ROUNDS = 25

/** One of the ways a batch is written, on a database of its own. */
class Path {
  readonly database: PostgresDatabase
  readonly dialect: PostgresDialect

  private constructor(database: PostgresDatabase, isFused: boolean) {
    this.database = database
    this.dialect = new PostgresDialect({
      db: database.connection({ searchPath: ['public', 'pg_catalog'] }),
      ...{ connection: 'app', direct: 'app', limitMs: 5_000, isFused, trace: undefined },
      warn: () => {},
    })
  }

  static async create({ isFused }: { isFused: boolean }): Promise<Path> {
    const database = await PostgresDatabase.create()
    await stopClock(database)
    const path = new Path(database, isFused)
    await path.dialect.open()
    return path
  }

  async claim(): Promise<string[]> {
    const rows = await this.dialect.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 1_000 })
    return rows.map(({ id }) => id).toSorted()
  }

  /** Everything it holds; numbers that the database gives out are left out. */
  async contents() {
    const found: Record<string, unknown[]> = {}
    for (const table of tableNames()) {
      const rows = await this.database.query<{ row: Record<string, unknown> }>(
        `select to_jsonb(t) - 'registration' as row from ${table} t order by (to_jsonb(t) - 'registration')::text`
      )
      found[table] = rows.map(({ row }) => row)
    }
    return found
  }

  async remove() {
    await this.dialect.close()
    await this.database.remove()
  }
}

test.group('PostgreSQL: one statement and the short transaction', (group) => {
  let paths: Path[]
  group.setup(async () => {
    if (SKIPPED !== null) return () => {}
    paths = [await Path.create({ isFused: true }), await Path.create({ isFused: false })]
    return async () => {
      for (const path of paths) await path.remove()
    }
  })

  for (const hasSignals of [false, true]) {
    test(`random batches ${hasSignals ? 'with' : 'without'} signals come to the same rows and answers`, async ({
      assert,
    }) => {
      let fused = 0
      for (let seed = 0; seed < SEEDS; seed++) {
        let now = 1_000
        for (const { database } of paths) await database.clear()
        const memory = new MemoryDatabase({ clock: () => now })
        const reference = new MemoryStore(memory)
        await reference.registerWorker(newWorker('w1'))
        for (const { database, dialect } of paths) {
          await setClock(database, now)
          await new Leases(dialect).register(newWorker('w1'))
        }
        const random = new RandomSource(seed)
        const writer = new BatchWriter(random, memory, { hasSignals })
        for (let round = 0; round < ROUNDS; round++) {
          const place = `seed ${seed}, round ${round}`
          now += random.below(10)
          for (const { database } of paths) await setClock(database, now)
          if (random.chance(0.7)) {
            const request = { owner: 'w1', claimKeys: [CLAIM_KEY], limit: 1_000 }
            const expected = await reference.claim(request)
            for (const path of paths)
              assert.deepEqual(
                await path.claim(),
                expected.map(({ id }) => id).toSorted(),
                `claims of ${place}`
              )
          }
          const writes: Write[] = writer.batch()
          if (fusedPlan(writes, { mayHaveParent: () => true })) fused++
          const expected = await reference.commit(writes)
          for (const path of paths) {
            const flush = await path.dialect.flush(writes)
            assert.deepEqual(flush.answers, expected.answers, `answers of ${place}`)
            assert.deepEqual(flush.news.ended, expected.news.ended, `ended in ${place}`)
            assert.deepEqual(flush.news.inbox, expected.news.inbox, `inbox news of ${place}`)
          }
          const [one, other] = await Promise.all(paths.map((path) => path.contents()))
          assert.deepEqual(one, other, `rows of ${place}`)
        }
      }
      assert.isAbove(fused, hasSignals ? 20 : (SEEDS * ROUNDS) / 2)
    })
      .timeout(120_000)
      .skip(SKIPPED !== null, SKIPPED ?? '')
  }
})
