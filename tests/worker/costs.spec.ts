import { test } from '@japa/runner'
import type { Store } from '../../src/contracts/store.ts'
import { CLAIM } from '../../src/stores/lucid/postgres/claim.ts'
import { turn } from '../../src/testing/conformance/writes.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { Cluster } from './cluster.ts'
import { firstStep, storedRun } from '../support/stored_run.ts'

const OPTIONS = { leaseMs: 300, pollMs: 20, idlePollMs: 20 }
const SUSPENDED = 10_000
const CHILDREN = 1_000
/** Wherever in a statement. */
const WRITE = /\b(insert into|update|delete from) durable_/i
const RENEWAL = /^update durable_workers set lease_until/

/** Stores runs of `wait` that have done a step and wait for a signal each. */
async function suspendMany(store: Store, count: number): Promise<void> {
  const ids = Array.from({ length: count }, (_, index) => `w${index}`)
  const starts = ids.map((id) => storedRun('wait', { id, leaseTo: 'gone' }))
  const turns = ids.map((id) =>
    turn(
      { id, token: 1 },
      {
        records: [firstStep('first', '{"v":1}')],
        opened: [
          {
            ...{ seq: 1, kind: 'signal', name: `token-${id}`, after: 1, token: `token-${id}` },
            ...{ target: null, inputs: null, dueIn: null, dueAt: null },
            ...{ attempts: 0, error: null, dispatch: null },
          },
        ],
        end: { kind: 'suspend', needs: null, dueAt: null, dueIn: null },
      }
    )
  )
  for (let from = 0; from < count; from += 500) {
    await store.commit(starts.slice(from, from + 500))
    await store.commit(turns.slice(from, from + 500))
  }
}

onEach(KINDS, (kind) =>
  test.group(`What a worker asks of its database (${kind})`, (group) => {
    let cluster: Cluster
    let statements: string[]
    group.each.setup(async () => {
      cluster = await Cluster.on(kind)
      statements = []
      return () => cluster.close()
    })
    const trace = (sql: string) => void statements.push(sql)

    test('an idle worker writes nothing but its renewal', async ({ assert }) => {
      const { app, connection } = await cluster.application(OPTIONS, trace)
      await app.work()
      await connection.called('renewWorker')
      const commits = connection.calls('commit')
      const before = statements.length
      await connection.called('renewWorker', 4)
      await connection.called('claim', 4)
      assert.equal(connection.calls('commit'), commits)
      assert.equal(connection.calls('registerWorker'), 1)
      if (kind === 'memory') return
      const sent = statements.slice(before)
      // A claim of PostgreSQL changes the runs that it finds: there are none.
      const writes = sent.filter((sql) => WRITE.test(sql) && sql !== CLAIM)
      for (const sql of writes) assert.match(sql, RENEWAL)
      const renewals = statements.filter((sql) => RENEWAL.test(sql))
      assert.isAtMost(renewals.length, connection.calls('renewWorker'))
      const transactions = sent.filter((sql) => /^begin/i.test(sql))
      assert.lengthOf(transactions, kind === 'SQLite' ? writes.length : 0)
    })

    test('where as many runs are in flight as there are slots, each is stored under the lease of its starter: none is claimed, and none is looked for by those who wait', async ({
      assert,
    }) => {
      const { app, engine, connection } = await cluster.application(
        { pollMs: 60_000, idlePollMs: 60_000 },
        trace
      )
      const one = engine.register('one', '1', (ctx) => ctx.localStep('only', () => 1))
      await app.work({ concurrency: 4 })
      const runs = async (count: number) => {
        let left = count
        const lane = async () => {
          while (left-- > 0) {
            const handle = await engine.start(one, null)
            assert.equal(await handle.result(), 1)
          }
        }
        await Promise.all(Array.from({ length: 4 }, lane))
      }
      await runs(20)
      const calls = () =>
        ['claim', 'load', 'statusesOf'].map((name) => connection.calls(name as keyof Store))
      const before = calls()
      await runs(200)
      assert.deepEqual(calls(), before)
    })

    test('ten thousand suspended runs cause no reads of their histories, and waking one reads only its own (case 13)', async ({
      assert,
    }) => {
      await suspendMany(await cluster.store(), SUSPENDED)
      const { app, engine, connection } = await cluster.application(OPTIONS, trace)
      engine.register('wait', '1', async (ctx) => {
        const first = await ctx.localStep('first', () => 1)
        const second = await ctx.waitForSignal(`token-${ctx.runId}`)
        return [first, second]
      })
      await app.work()
      await connection.called('claim', 5)
      await connection.called('recoverExpired', 2)
      assert.equal(connection.calls('load'), 0)
      // Where workers were lost, waits and entries of the runs that they executed are looked at.
      const ordinary = statements.filter((sql) => !/parked_at = /.test(sql))
      for (const sql of ordinary) assert.notMatch(sql, /durable_(history|waits|inbox|payloads)/)
      for (const sql of statements) assert.notMatch(sql, /durable_(history|payloads)/)

      await engine.signal('token-w77', 2)
      const { output } = await engine.waitForRun('w77')
      assert.deepEqual(output, [1, 2])
      assert.equal(connection.calls('load'), 1)
    }).timeout(60_000)

    test('a fan-out over 1,000 children executes the body of the parent once, and costs a few calls and statements per child (case 19)', async ({
      assert,
    }) => {
      const { app, engine, connection } = await cluster.application({}, trace)
      let bodies = 0
      const child = engine.register('child', '1', (ctx, input: number) =>
        ctx.localStep('double', () => 2 * input)
      )
      const parent = engine.register('parent', '1', async (ctx, size: number) => {
        bodies++
        const inputs = Array.from({ length: size }, (_, index) => index)
        return ctx.all(child, inputs, { concurrency: 100 })
      })
      await app.work()
      await engine.start(parent, CHILDREN, 'p')
      const { output } = await engine.waitForRun('p')
      assert.deepEqual(
        output,
        Array.from({ length: CHILDREN }, (_, index) => 2 * index)
      )
      const [loads, commits] = [connection.calls('load'), connection.calls('commit')]
      console.log(
        `${kind}: ${CHILDREN} children: ${loads} loads, ${commits} commits, ${statements.length} statements`
      )
      assert.equal(bodies, 1)
      // As many as it takes if each of them is claimed and written alone.
      assert.isAtMost(loads, 2 * CHILDREN)
      assert.isAtMost(commits, 3 * CHILDREN)
      assert.isAtMost(statements.length, 40 * CHILDREN)
    }).timeout(60_000)
  })
)
