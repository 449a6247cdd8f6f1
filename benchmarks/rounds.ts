import type { SubjectFactory } from './subjects.ts'
import type { Workload } from './workloads.ts'

/** What a subject reached in each round. */
interface Result {
  subject: string
  rounds: number[][]
}

/**
 * Measures a workload on every subject in turn, round after round, so that what else happens on the machine meets all
 * of them. The first round is a warm-up.
 */
export async function measureInRounds(
  workload: Workload,
  params: { subjects: Readonly<Record<string, SubjectFactory>>; rounds: number }
): Promise<Result[]> {
  const results = Object.keys(params.subjects).map((subject) => ({
    subject,
    rounds: [] as number[][],
  }))
  for (let round = 0; round <= params.rounds; round++) {
    for (const { subject, rounds } of results) {
      const figures = await workload.measure(params.subjects[subject]!)
      if (round > 0) rounds.push(figures)
    }
  }
  return results
}

/** Prints the medians with their spread, and the engine's ratio to each bare writer, both taken round by round. */
export function print(workload: Workload, results: readonly Result[]): void {
  for (const [at, figure] of workload.figures.entries()) {
    const title = [workload.title, figure].filter((part) => part !== '').join(' ')
    for (const { subject, rounds } of results) {
      const all = rounds.map((figures) => figures[at] ?? 0)
      const spread = `${shown(Math.min(...all))} to ${shown(Math.max(...all))}`
      console.log(`    ${subject.padEnd(28)} ${shown(median(all)).padStart(8)} ${workload.unit}  (${spread})`)
    }
    for (const engine of results.filter(({ subject }) => subject.startsWith('engine'))) {
      for (const bare of results.filter(({ subject }) => subject.startsWith('bare'))) {
        const pairs = engine.rounds.map((figures, round) => ratio(figures[at], bare.rounds[round]?.[at]))
        const figures = `${shownMedian(engine, at)} against ${bare.subject} ${shownMedian(bare, at)}`
        console.log(`${title}, ${engine.subject} ${figures}: ${median(pairs).toFixed(2)}x`)
      }
    }
  }
}

function shownMedian({ rounds }: Result, at: number): string {
  return shown(median(rounds.map((figures) => figures[at] ?? 0)))
}

function ratio(one: number | undefined, other: number | undefined): number {
  return one === undefined || other === undefined ? Number.NaN : one / other
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

function shown(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(2)
}
