import { test } from '@japa/runner'
import { ENGINE_TABLES, SLIM_TABLES } from '../../benchmarks/bare_tables.ts'
import { inMemory, onPostgres, onSqlite } from '../../benchmarks/engine_databases.ts'
import { measureOn } from '../../benchmarks/measured.ts'
import { measureRecovery } from '../../benchmarks/recovery.ts'
import type { SubjectFactory } from '../../benchmarks/subject.ts'
import { bareWriterOn, engineOn } from '../../benchmarks/subjects.ts'
import { fanOut, latency, throughput } from '../../benchmarks/workloads.ts'
import { PostgresDatabase } from '../stores/postgres_database.ts'
import { SERVER, SKIPPED } from '../stores/postgres_server.ts'

const SUBJECTS: Readonly<Record<string, SubjectFactory>> = {
  'the bare writer on tables of its own': bareWriterOn(SLIM_TABLES),
  "the bare writer on the engine's tables": bareWriterOn(ENGINE_TABLES),
  'the engine on memory': engineOn(inMemory),
  'the engine on SQLite': engineOn(onSqlite),
}

const ONE_STEP = throughput({
  ...{ title: 'one-step runs', counted: 'runs', runs: 30, steps: 1, inFlight: 8 },
})
const WORKLOADS = [
  { workload: ONE_STEP, runs: 30, records: 30 },
  {
    workload: throughput({
      ...{ title: 'ten-step runs', counted: 'steps', runs: 7, steps: 10, inFlight: 3 },
    }),
    ...{ runs: 7, records: 70 },
  },
  { workload: fanOut({ title: 'a fan-out', children: 70 }), runs: 71, records: 71 },
  { workload: latency({ title: 'runs alone', runs: 5 }), runs: 5, records: 5 },
]

test.group('Workloads of the benchmarks', (group) => {
  let database: PostgresDatabase | null = null
  group.each.teardown(async () => {
    await database?.remove()
    database = null
  })

  const onNewPostgres: SubjectFactory = async (params) => {
    database = await PostgresDatabase.empty()
    return engineOn(onPostgres({ server: SERVER, database: database.name }))(params)
  }

  for (const { workload, runs, records } of WORKLOADS) {
    for (const [name, make] of Object.entries({
      ...SUBJECTS,
      'the engine on PostgreSQL': onNewPostgres,
    })) {
      test(`${workload.title} by ${name}: the database holds each of them, completed, and what it recorded`, async ({
        assert,
      }) => {
        const { figures, asked } = await measureOn(workload, make)
        assert.deepEqual(asked, { runs, completed: runs, records })
        assert.lengthOf(figures, workload.figures.length)
        for (const figure of figures) assert.isAbove(figure, 0)
      }).skip(make === onNewPostgres && SKIPPED !== null, SKIPPED ?? '')
    }
  }
})

test.group('Recovery in the benchmarks', () => {
  test('takes some time after which the database holds each killed run, completed, and each step once', async ({
    assert,
  }) => {
    assert.isAbove(await measureRecovery(20), 0)
  })
})

test.group('What a subject does less than it was asked', () => {
  test('is an error when it left out a run', async ({ assert }) => {
    const make: SubjectFactory = async (params) => {
      const subject = await engineOn(inMemory)(params)
      return {
        ...subject,
        run: async (id, steps) => {
          if (id !== 'run-7') await subject.run(id, steps)
        },
      }
    }
    await assert.rejects(
      () => measureOn(ONE_STEP, make),
      /holds \{"runs":29,"completed":29,"records":29\}, not \{"runs":30,/
    )
  })

  test('is an error when it left out a step', async ({ assert }) => {
    const make: SubjectFactory = async (params) => {
      const subject = await engineOn(inMemory)(params)
      return { ...subject, run: (id, steps) => subject.run(id, id === 'run-7' ? 0 : steps) }
    }
    await assert.rejects(
      () => measureOn(ONE_STEP, make),
      /holds \{"runs":30,"completed":30,"records":29\}, not \{"runs":30,/
    )
  })
})
