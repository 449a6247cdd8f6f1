import { test } from '@japa/runner'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import {
  storeConformance,
  type StoreCorruption,
  type StoreUnderTest,
} from '../../src/testing/store_conformance.ts'
import { newWorker, signal, start } from '../../src/testing/conformance/writes.ts'
import { cpuTime } from '../support/cpu_time.ts'

function corruptionOf(database: MemoryDatabase): StoreCorruption {
  const { runs, waits, inbox } = database
  const rewrite = (runId: string, changes: Parameters<typeof Object.assign>[1]) => {
    const row = runs.get(runId)
    if (row) runs.replace({ ...row, ...changes })
  }
  return {
    dropWait: async (runId, seq) => waits.close({ runId, seq }),
    dropRun: async (runId) => runs.delete(runId),
    dropInbox: async (runId) => inbox.remove(runId, () => true),
    forgetDue: async (runId) => rewrite(runId, { dueAt: null }),
    forgetOwner: async (runId) => rewrite(runId, { owner: 'nobody' }),
    setFormat: async (runId, format) => rewrite(runId, { format }),
  }
}

async function create(): Promise<StoreUnderTest> {
  const database = new MemoryDatabase()
  const stores = [new MemoryStore(database)]
  const [store = new MemoryStore()] = stores
  return {
    store,
    another: async () => {
      const other = new MemoryStore(database)
      stores.push(other)
      return other
    },
    corrupt: corruptionOf(database),
    close: async () => {
      for (const opened of stores) await opened.close()
    },
  }
}

storeConformance({
  group: (title, define) => test.group(`MemoryStore: ${title}`, define),
  test: (title, run) => test(title, run),
  create,
})

test.group('MemoryStore', () => {
  test('tells the other connections of a change, not the one that made it', async ({ assert }) => {
    const database = new MemoryDatabase()
    const [mine, other] = [new MemoryStore(database), new MemoryStore(database)]
    const heard: string[] = []
    mine.onForeignChange(() => heard.push('mine'))
    const stop = other.onForeignChange(() => heard.push('other'))
    await mine.commit([start('r1')])
    await mine.now()
    assert.deepEqual(heard, ['other'])
    await other.commit([signal('s1', 'go')])
    await mine.now()
    assert.deepEqual(heard, ['other', 'mine'])
    stop()
    await mine.commit([start('r2')])
    await mine.now()
    assert.deepEqual(heard, ['other', 'mine'])
  })

  test('tells every connection of a moved clock', async ({ assert }) => {
    const database = new MemoryDatabase()
    const stores = [new MemoryStore(database), new MemoryStore(database)]
    const heard: number[] = []
    stores.forEach((store, index) => store.onForeignChange(() => heard.push(index)))
    await stores[0]?.advanceClock(5)
    await stores[0]?.now()
    assert.deepEqual(heard.toSorted(), [0, 1])
  })

  test('reads the clock it is given, and moves it by what tests advance', async ({ assert }) => {
    const store = new MemoryStore(new MemoryDatabase({ clock: () => 1_000 }))
    assert.equal(await store.now(), 1_000)
    await store.advanceClock(50)
    await store.advanceClock(5)
    assert.equal(await store.now(), 1_055)
  })

  test('claims beside 200,000 sleepers in the time it takes without them (case 13)', async ({
    assert,
  }) => {
    const database = new MemoryDatabase()
    const store = new MemoryStore(database)
    const { answers } = await store.commit([start('model')])
    const [answer] = answers
    if (answer?.type !== 'started') throw new Error('the model run was not started')
    await store.registerWorker(newWorker('w1'))
    await store.claim({ owner: 'w1', claimKeys: [answer.run.claimKey], limit: 1 })
    const dueAt = database.now() + 3_600_000
    for (let index = 0; index < 200_000; index++)
      database.runs.replace({ ...answer.run, id: `s${index}`, status: 'suspended', dueAt })
    const before = cpuTime()
    for (let index = 0; index < 1_000; index++) {
      await store.commit([start(`r${index}`)])
      const [taken] = await store.claim({
        ...{ owner: 'w1', claimKeys: [answer.run.claimKey], limit: 10 },
      })
      if (taken?.id !== `r${index}`) assert.equal(taken?.id, `r${index}`)
    }
    assert.isBelow(cpuTime() - before, 2_000)
  })
})
