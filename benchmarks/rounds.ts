import { measureOn } from './measured.ts'
import type { SubjectFactory } from './subject.ts'
import type { Figure, Workload } from './workloads.ts'

/** The subject that is put next to those that begin with `BARE`: they write to the same kind of database. */
export const ENGINE = 'engine, sqlite'
export const BARE = 'bare writer'

/** What a subject reached in each round, by figure. */
export interface Result {
  subject: string
  rounds: number[][]
}

/**
 * Measures a workload on every subject in turn, round after round, so that what else happens on the machine meets all
 * of them. The first round is a warm-up.
 */
export async function measureInRounds(
  workload: Workload,
  params: { subjects: ReadonlyMap<string, SubjectFactory>; rounds: number }
): Promise<Result[]> {
  const measured = [...params.subjects].map(([subject, make]) => {
    const rounds: number[][] = []
    return { subject, make, rounds }
  })
  for (let round = 0; round <= params.rounds; round++) {
    for (const { make, rounds } of measured) {
      const { figures } = await measureOn(workload, make)
      if (round > 0) rounds.push(figures)
    }
  }
  return measured
}

/** Lines of the medians with their spread, and of the engine's ratio to each bare writer. */
export function reportOf(workload: Workload, results: readonly Result[]): string[] {
  const lines: string[] = [workload.title]
  for (const [at, figure] of workload.figures.entries()) {
    for (const result of results) lines.push(figureLine(result, { figure, at }))
    for (const engine of results.filter(({ subject }) => subject === ENGINE)) {
      for (const bare of results.filter(({ subject }) => subject.startsWith(BARE))) {
        const [mine, its] = [engine, bare].map((result) => shown(median(columnOf(result, at))))
        const pair = `engine ${mine} against ${bare.subject} ${its}`
        const ratio = ratioOf(engine, bare, at).toFixed(2)
        lines.push(`${workload.title}, ${figure.name}, sqlite: ${pair}: ${ratio}x`)
      }
    }
  }
  return lines
}

/** The median of what a subject reached, with its spread. */
export function figureLine(result: Result, { figure, at }: { figure: Figure; at: number }): string {
  const all = columnOf(result, at)
  const middle = `${shown(median(all)).padStart(8)} ${figure.unit.padEnd(2)}`
  const spread = `${shown(Math.min(...all))} to ${shown(Math.max(...all))}`
  return `  ${result.subject.padEnd(34)} ${figure.name.padEnd(13)} ${middle}  (${spread})`
}

/** One figure of every round. */
export function columnOf(result: Result, at: number): number[] {
  return result.rounds.map((figures) => figures[at] ?? Number.NaN)
}

/** The median of the ratios that the rounds gave: what disturbs a round disturbs both of its figures. */
export function ratioOf(one: Result, other: Result, at: number): number {
  const its = columnOf(other, at)
  return median(columnOf(one, at).map((value, round) => value / (its[round] ?? Number.NaN)))
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

export function shown(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(2)
}
