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

/** Lines of the medians with their spread, and of the engine's ratio to each bare writer, taken round by round. */
export function reportOf(workload: Workload, results: readonly Result[]): string[] {
  const lines: string[] = [workload.title]
  for (const [at, figure] of workload.figures.entries()) {
    const column = (result: Result) => result.rounds.map((figures) => figures[at] ?? Number.NaN)
    for (const result of results) {
      lines.push(figureLine({ subject: result.subject, figure, all: column(result) }))
    }
    for (const engine of results.filter(({ subject }) => subject === ENGINE)) {
      for (const bare of results.filter(({ subject }) => subject.startsWith(BARE))) {
        const mine = column(engine)
        const ratios = column(bare).map((its, round) => (mine[round] ?? Number.NaN) / its)
        const pair = `engine ${shown(median(mine))} against ${bare.subject} ${shown(median(column(bare)))}`
        lines.push(
          `${workload.title}, ${figure.name}, sqlite: ${pair}: ${median(ratios).toFixed(2)}x`
        )
      }
    }
  }
  return lines
}

/** The median of what a subject reached in all rounds, with its spread. */
export function figureLine(params: {
  subject: string
  figure: Figure
  all: readonly number[]
}): string {
  const { subject, figure, all } = params
  const middle = `${shown(median(all)).padStart(8)} ${figure.unit.padEnd(2)}`
  const spread = `${shown(Math.min(...all))} to ${shown(Math.max(...all))}`
  return `  ${subject.padEnd(34)} ${figure.name.padEnd(13)} ${middle}  (${spread})`
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

export function shown(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(2)
}
