import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import { SqliteDatabase } from '../stores/sqlite_database.ts'
import { StatementCount, type StatementCost } from '../stores/statement_count.ts'
import { cleanUp } from '../support/clean_up.ts'
import { DurableApp } from '../support/durable_app.ts'

/** No round of polling falls into a scenario. */
const SELDOM = { pollMs: 600_000, idlePollMs: 600_000 }
const IN_FLIGHT = 50
const RUNS_PER_LANE = 4

/** A workflow of so many local steps, which returns what they returned. */
function registerSteps(engine: WorkflowEngine) {
  return engine.register('steps', '1', async (ctx, count: number) => {
    const outputs: number[] = []
    for (let seq = 0; seq < count; seq++) outputs.push(await ctx.localStep('step', () => seq))
    return outputs
  })
}

function outputsOf(steps: number): number[] {
  return Array.from({ length: steps }, (_, seq) => seq)
}

test.group('Statements of a run on SQLite', (group) => {
  let database: SqliteDatabase
  let apps: DurableApp[]
  let count: StatementCount
  group.each.setup(async () => {
    database = await SqliteDatabase.create()
    apps = []
    count = new StatementCount()
    return () => cleanUp(...apps.map((app) => () => app.close()), () => database.remove())
  })

  async function openApp(trace?: (sql: string) => void): Promise<DurableApp> {
    const store = await database.store(trace ? { trace } : {})
    const app = new DurableApp({ store, options: SELDOM })
    apps.push(app)
    return app
  }

  /** The cost of a run that the process of its worker starts while that is idle, from start to result. */
  async function costAlone(steps: number): Promise<StatementCost & { outputs: number[] }> {
    const app = await openApp(count.trace)
    const workflow = registerSteps(app.engine)
    const worker = await app.work()
    await worker.whenIdle()
    let outputs: number[] = []
    const cost = await count.ofRuns(async () => {
      const handle = await app.engine.start(workflow, steps)
      outputs = await handle.result()
    })
    return { ...cost, outputs }
  }

  /** The cost of each of many runs, fifty in flight at any time. */
  async function costAmongFifty(steps: number): Promise<StatementCost & { outputs: number[][] }> {
    const app = await openApp(count.trace)
    const workflow = registerSteps(app.engine)
    const worker = await app.work({ concurrency: IN_FLIGHT })
    await worker.whenIdle()
    const outputs: number[][] = []
    const lane = async () => {
      for (let run = 0; run < RUNS_PER_LANE; run++) {
        const handle = await app.engine.start(workflow, steps)
        outputs.push(await handle.result())
      }
    }
    const { statements, transactions } = await count.ofRuns(() =>
      Promise.all(Array.from({ length: IN_FLIGHT }, lane))
    )
    const runs = IN_FLIGHT * RUNS_PER_LANE
    return { statements: statements / runs, transactions: transactions / runs, outputs }
  }

  test('a one-step run alone, leased to its starter, takes at most 9 in 2 transactions, its result included', async ({
    assert,
  }) => {
    const { outputs, ...cost } = await costAlone(1)
    assert.deepEqual(outputs, [0])
    assert.isAtMost(cost.statements, 9)
    assert.isAtMost(cost.transactions, 2)
  })

  test('each further step alone takes at most 2 in one transaction', async ({ assert }) => {
    const one = await costAlone(1)
    const eleven = await costAlone(11)
    assert.deepEqual(eleven.outputs, outputsOf(11))
    assert.isAtMost(eleven.statements - one.statements, 10 * 2)
    assert.isAtMost(eleven.transactions - one.transactions, 10)
  })

  test('a one-step run of fifty in flight takes at most 6.12 in 0.08 transactions, and none is claimed', async ({
    assert,
  }) => {
    const { outputs, ...cost } = await costAmongFifty(1)
    assert.deepEqual(outputs, Array(IN_FLIGHT * RUNS_PER_LANE).fill([0]))
    // A batch that a busy machine cuts in two costs one more statement, and nothing for each of its runs.
    assert.isAtMost(cost.statements, 6 + 6 / IN_FLIGHT)
    assert.isAtMost(cost.transactions, 4 / IN_FLIGHT)
  })

  test('each further step of fifty runs in flight takes at most 1.04 in 0.04 transactions', async ({
    assert,
  }) => {
    const one = await costAmongFifty(1)
    const eleven = await costAmongFifty(11)
    assert.deepEqual(eleven.outputs, Array(IN_FLIGHT * RUNS_PER_LANE).fill(outputsOf(11)))
    assert.isAtMost((eleven.statements - one.statements) / 10, 1 + 2 / IN_FLIGHT)
    assert.isAtMost((eleven.transactions - one.transactions) / 10, 2 / IN_FLIGHT)
  })

  /** The cost to an idle worker of one-step runs that another process starts in one write. */
  async function costClaimed(
    ids: readonly string[]
  ): Promise<StatementCost & { outputs: unknown[] }> {
    const starter = await openApp()
    const claimer = await openApp(count.trace)
    registerSteps(claimer.engine)
    const worker = await claimer.work({ concurrency: ids.length })
    await worker.whenIdle()
    const workflow = registerSteps(starter.engine)
    const cost = await count.ofRuns(async () => {
      const ended = Promise.withResolvers<void>()
      let left = ids.length
      claimer.engine.on('run.completed', () => {
        if (--left === 0) ended.resolve()
      })
      await Promise.all(ids.map((id) => starter.engine.start(workflow, 1, id)))
      await ended.promise
    })
    const runs = await Promise.all(ids.map((id) => starter.engine.getRun(id)))
    return { ...cost, outputs: runs.map((run) => run?.output) }
  }

  test('a one-step run that another process started costs its worker at most 11 in 2 transactions', async ({
    assert,
  }) => {
    const cost = await costClaimed(['r1'])
    assert.deepEqual(cost.outputs, [[0]])
    assert.isAtMost(cost.statements, 11)
    assert.isAtMost(cost.transactions, 2)
  })

  test('fifty one-step runs that another process started are claimed together and cost at most 5.24 each', async ({
    assert,
  }) => {
    const ids = Array.from({ length: IN_FLIGHT }, (_, index) => `r${index}`)
    const cost = await costClaimed(ids)
    assert.deepEqual(cost.outputs, Array(IN_FLIGHT).fill([0]))
    assert.isAtMost(cost.statements, 5 * IN_FLIGHT + 12)
    assert.isAtMost(cost.transactions, 4)
  })

  test('a fan-out starts its children in one write, claims them fifty at a time, and costs at most 8.5 for each', async ({
    assert,
  }) => {
    const app = await openApp(count.trace)
    const steps = registerSteps(app.engine)
    const parent = app.engine.register('parent', '1', (ctx, children: number) =>
      ctx.all(steps, Array<number>(children).fill(1))
    )
    const worker = await app.work({ concurrency: IN_FLIGHT })
    await worker.whenIdle()
    let outputs: unknown[] = []
    const cost = await count.ofRuns(async () => {
      const handle = await app.engine.start(parent, 4 * IN_FLIGHT)
      outputs = await handle.result()
    })
    assert.deepEqual(outputs, Array(4 * IN_FLIGHT).fill([0]))
    assert.isAtMost(cost.statements, 4 * IN_FLIGHT * 8.5)
    // Start, children, four claims, four ends, and the parent's claim and end.
    assert.isAtMost(cost.transactions, 24)
  })
})
