import type { Assert } from '@japa/assert'
import { test } from '@japa/runner'
import { decode } from '../../src/core/payload.ts'
import { decodeError } from '../../src/core/serialized_error.ts'
import { CRASH_MOMENTS, type CrashMoment } from '../../src/testing/crash_store.ts'
import type { DatabaseAddress } from '../support/process_database.ts'
import { SQL_KINDS } from '../stores/databases.ts'
import { CrashPoints, inFlight, type Picture, type Survived } from './crash_points.ts'
import { CrashDatabases } from './crash_databases.ts'
import type { Scenario } from './scenario.ts'
import { FAILING_SCENARIOS } from './failing_scenarios.ts'
import { type ScenarioName, SCENARIOS } from './scenarios.ts'

/** What replay depends on: everything but times, what the leases were, and how often they were lost. */
function comparable(picture: Picture) {
  return [...picture.runs].map(([id, { records, waits }]) => ({
    id,
    waits,
    records: records.map(
      ({ seq, kind, name, after, ordinal, status, output, error, generation }) => ({
        ...{ seq, kind, name, after, ordinal, status, output, generation },
        error: error && decodeError(error).message.replace(/lost \d+ times/, 'lost'),
      })
    ),
  }))
}

function outcomesOf(picture: Picture): Scenario['outcomes'] {
  const outcomes: Scenario['outcomes'] = {}
  for (const [id, { run }] of picture.runs)
    outcomes[id] =
      run.status === 'completed' && run.output !== null
        ? { output: decode(run.output) }
        : { failed: run.errorCode ?? `it is ${run.status}` }
  return outcomes
}

/** The steps of attempts. */
function stepsOf(attempts: Iterable<string>): Set<string> {
  return new Set([...attempts].map((attempt) => attempt.slice(0, attempt.lastIndexOf('#'))))
}

function runOf(step: string): string {
  return step.slice(0, step.lastIndexOf(':'))
}

/**
 * Runs that were being executed at a kill are counted by whoever takes them up; no others are. One that was lost
 * before, and that nobody has taken up yet, has a due time.
 */
function countOf(id: string, { undisturbed, killed }: { undisturbed: Picture; killed: Picture[] }) {
  const isExecuted = ({ runs }: Picture) => {
    const run = runs.get(id)?.run
    return run?.status === 'running' && run.dueAt === null
  }
  const before = undisturbed.runs.get(id)?.run.recoveryAttempts ?? 0
  return before + killed.filter(isExecuted).length
}

function assertSurvived(
  assert: Assert,
  { survived, undisturbed, name }: { survived: Survived; undisturbed: Picture; name: ScenarioName }
) {
  const { point, killed, end, report } = survived
  const at = `${point.moment} write ${point.write}`
  const { outcomes, parallel = 1, requeued = [] }: Scenario = SCENARIOS[name]
  assert.deepEqual(outcomesOf(end), outcomes, at)
  assert.deepEqual(comparable(end), comparable(undisturbed), at)
  assert.deepEqual(report.stranded, [], at)
  assert.sameMembers([...end.effects.keys()], [...undisturbed.effects.keys()], at)
  for (const [attempt, count] of end.effects) {
    const kills = killed.filter((picture) => inFlight(picture).has(attempt)).length
    assert.isAtMost(count, 1 + kills, `${at}: ${attempt}`)
  }
  for (const picture of killed)
    for (const [runId, steps] of Map.groupBy(stepsOf(inFlight(picture)), runOf))
      assert.isAtMost(steps.length, parallel, `${at}: steps in flight in ${runId}`)
  for (const [id, { run }] of end.runs) {
    const due = countOf(id, { undisturbed, killed })
    const isRight = requeued.includes(id)
      ? run.recoveryAttempts <= due
      : run.recoveryAttempts === due
    assert.isTrue(isRight, `${at}: recoveryAttempts of ${id}: ${run.recoveryAttempts} of ${due}`)
  }
}

const ALL = Object.keys(SCENARIOS) as ScenarioName[]
/** Those whose writes PostgreSQL makes in short transactions, and those that wake others. */
const ON_POSTGRES: readonly ScenarioName[] = [
  'a parent with children',
  'started children and a signal to one',
  ...(Object.keys(FAILING_SCENARIOS) as ScenarioName[]),
]

interface Coverage {
  names: readonly ScenarioName[]
  moments: readonly CrashMoment[]
  /** How many of the writes of one process another one makes at least: on PostgreSQL, time tells which share a batch. */
  leastShare: number
}

/** After an answer has been used, the database has had no part in what is lost: one of them tells. */
const COVERED: Record<DatabaseAddress['kind'], Coverage> = {
  SQLite: { names: ALL, moments: CRASH_MOMENTS, leastShare: 1 },
  PostgreSQL: { names: ON_POSTGRES, moments: ['before', 'answered'], leastShare: 0.8 },
}

for (const kind of SQL_KINDS) {
  const { names, moments, leastShare } = COVERED[kind]
  test.group(`Crash points on ${kind}`, (group) => {
    let databases: CrashDatabases
    group.setup(() => {
      databases = new CrashDatabases(kind)
      return () => databases.remove()
    })

    for (const name of names)
      test(`${name}: killed at any write and started again, it ends as if undisturbed, and only steps in flight run twice (P1, P3, P4)`, async ({
        assert,
        cleanup,
      }) => {
        const points = await CrashPoints.of(name, databases)
        cleanup(() => points.close())
        const { end: undisturbed, report } = await points.undisturbed()
        assert.deepEqual(outcomesOf(undisturbed), SCENARIOS[name].outcomes)
        const check = (survived: Survived) =>
          assertSurvived(assert, { survived, undisturbed, name })
        const results = await Promise.allSettled(
          moments.map((moment) => points.each(moment, check))
        )
        const counts = results.map((result) => {
          if (result.status === 'rejected') throw result.reason
          return result.value
        })
        const kills = counts.map((count, index) => `${count} ${moments[index]}`)
        console.log(`${name}: ${report.writes} writes, killed at ${kills.join(', ')}`)
        for (const count of counts) assert.isAtLeast(count, Math.ceil(report.writes * leastShare))
      }).timeout(120_000)

    test('ten steps, every process killed at its sixth write: each takes the run a step further', async ({
      assert,
      cleanup,
    }) => {
      const name = 'a run of ten steps'
      const points = await CrashPoints.of(name, databases)
      cleanup(() => points.close())
      const { end: undisturbed } = await points.undisturbed()
      const survived = await points.again({ moment: 'answered', write: 6 }, 20)
      assertSurvived(assert, { survived, undisturbed, name })
      assert.isAtLeast(survived.killed.length, 3)
    }).timeout(120_000)
  })
}
