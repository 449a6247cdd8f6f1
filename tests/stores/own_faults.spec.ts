import { test } from '@japa/runner'
import type { Write } from '../../src/core/change_set.ts'
import {
  COMPLETE,
  newRun,
  signal,
  start,
  startLeased,
  turn,
} from '../../src/testing/conformance/writes.ts'
import { PostgresDatabase } from './postgres_database.ts'
import { SKIPPED } from './postgres_server.ts'
import { SqliteDatabase } from './sqlite_database.ts'

const FAULT = new TypeError('Cannot read properties of undefined')

/** A write on which our own code fails, as a bug of it would. */
const broken: Record<string, Write> = {
  'the fold': {
    ...turn({ id: 'r1', token: 1 }, { end: COMPLETE }),
    get records(): never {
      throw FAULT
    },
  },
  'what makes statements of the plan': {
    type: 'start',
    leaseTo: null,
    run: {
      ...newRun('r2'),
      get tags(): never {
        throw FAULT
      },
    },
  },
}

const DATABASES = {
  SQLite: { create: () => SqliteDatabase.create(), skipped: null },
  PostgreSQL: { create: () => PostgresDatabase.create(), skipped: SKIPPED },
}

for (const [name, { create, skipped }] of Object.entries(DATABASES)) {
  test.group(`${name} and faults of our own`, (group) => {
    group.tap((each) => each.skip(skipped !== null, skipped ?? ''))

    for (const [title, write] of Object.entries(broken)) {
      test(`a fault in ${title} refuses nobody's run, and the next batch is written`, async ({
        assert,
        cleanup,
      }) => {
        const database = await create()
        cleanup(() => database.remove())
        const store = await database.store()
        await store.commit([startLeased('r1')])
        // A signal: it is not written by the one statement of PostgreSQL.
        const error = await store
          .commit([start('r3'), signal('s1', 'go'), write])
          .then(() => null)
          .catch((reason: unknown) => reason)
        assert.equal(error, FAULT)
        assert.isNull(await store.getRun('r3'))
        const { answers } = await store.commit([start('r3'), signal('s1', 'go')])
        assert.deepEqual(
          answers.map(({ type }) => type),
          ['started', 'signalled']
        )
      })
    }
  })
}
