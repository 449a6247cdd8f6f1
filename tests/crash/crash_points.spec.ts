import type { Assert } from '@japa/assert'
import { test } from '@japa/runner'
import { decode } from '../../src/core/payload.ts'
import { decodeError } from '../../src/core/serialized_error.ts'
import { CRASH_MOMENTS } from '../../src/testing/crash_store.ts'
import { CrashPoints, inFlight, type Picture, type Survived } from './crash_points.ts'
import type { Scenario } from './scenario.ts'
import { type ScenarioName, SCENARIOS } from './scenarios.ts'

/** What replay depends on: everything but times and what the leases were. */
function comparable(picture: Picture) {
  return [...picture.runs].map(([id, { records, waits }]) => ({
    id,
    waits,
    records: records.map(
      ({ seq, kind, name, after, ordinal, status, output, error, generation }) => ({
        ...{ seq, kind, name, after, ordinal, status, output, generation },
        error: error && decodeError(error).message,
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

/** Runs that were being executed at a kill are counted by whoever takes them up; no others are. */
function countsDue(killed: readonly Picture[]) {
  const counts = new Map<string, number>()
  for (const { runs } of killed)
    for (const [id, { run }] of runs)
      counts.set(id, (counts.get(id) ?? 0) + (run.status === 'running' ? 1 : 0))
  return counts
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
  const counts = countsDue(killed)
  for (const [id, { run }] of end.runs) {
    const due = counts.get(id) ?? 0
    const isRight = requeued.includes(id)
      ? run.recoveryAttempts <= due
      : run.recoveryAttempts === due
    assert.isTrue(isRight, `${at}: recoveryAttempts of ${id}: ${run.recoveryAttempts} of ${due}`)
  }
}

test.group('Crash points on SQLite', () => {
  for (const name of Object.keys(SCENARIOS) as ScenarioName[]) {
    test(`${name}: killed at any write and started again, it ends as if undisturbed, and only steps in flight run twice (P1, P3, P4)`, async ({
      assert,
      cleanup,
    }) => {
      const points = await CrashPoints.of(name)
      cleanup(() => points.close())
      const { end: undisturbed, report } = await points.undisturbed()
      assert.deepEqual(outcomesOf(undisturbed), SCENARIOS[name].outcomes)
      const check = (survived: Survived) => assertSurvived(assert, { survived, undisturbed, name })
      const covered = await Promise.all(
        CRASH_MOMENTS.map((moment) => points.each(moment, { atLeast: report.writes, check }))
      )
      const sum = covered.reduce((total, count) => total + count)
      console.log(
        `${name}: ${report.writes} writes, killed at ${sum} points (${CRASH_MOMENTS.map((moment, index) => `${covered[index]} ${moment}`).join(', ')})`
      )
      for (const count of covered) assert.isAtLeast(count, report.writes)
    }).timeout(120_000)
  }

  test('ten steps, every process killed at its sixth write: each takes the run a step further', async ({
    assert,
    cleanup,
  }) => {
    const name = 'a run of ten steps'
    const points = await CrashPoints.of(name)
    cleanup(() => points.close())
    const { end: undisturbed } = await points.undisturbed()
    const survived = await points.again({ moment: 'answered', write: 6 }, 20)
    assertSurvived(assert, { survived, undisturbed, name })
    assert.isAtLeast(survived.killed.length, 3)
  }).timeout(120_000)
})
