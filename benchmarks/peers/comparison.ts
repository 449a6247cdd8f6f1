import { join } from 'node:path'
import { columnOf, figureLine, median, ratioOf, type Result, shown } from '../rounds.ts'
import { type ThroughputParams, throughput } from '../workloads.ts'
import { OWN, type PeerName } from './peer_subjects.ts'
import { countApart, measureApart } from './peer_processes.ts'

/** Throughput that is measured on several subjects. */
export interface Comparison {
  params: Omit<ThroughputParams, 'runs'>
  /** How many are measured: a number that takes the subject some seconds. */
  runs: Readonly<Record<PeerName, number>>
  /** What the first figure is called in the line that compares. */
  label: string
}

export interface ComparisonOptions {
  subjects: readonly PeerName[]
  rounds: number
  /** A folder for profiles of the engine; default: none are made. */
  profile?: string
}

/**
 * Measures the subjects in turn, in every second round the other way about, so that what else happens on the machine
 * meets all of them.
 */
export async function measureInTurn(
  { params, runs }: Comparison,
  { subjects, rounds, profile }: ComparisonOptions
): Promise<Result[]> {
  const results = new Map(
    subjects.map((subject) => [subject, { subject, rounds: [] as number[][] }])
  )
  for (let round = 0; round < rounds; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const isProfiled = profile !== undefined && subject === OWN
      const name = `${params.title.split(' ')[0]}-${round + 1}.cpuprofile`
      const { figures } = await measureApart(subject, {
        params: { ...params, runs: runs[subject] },
        profile: isProfiled ? join(profile, name) : null,
      })
      results.get(subject)?.rounds.push(figures)
    }
  }
  return [...results.values()]
}

/** Lines of what each subject reached, round by round, and of the engine's ratio to each other. */
export function comparisonLines(
  { params, label }: Comparison,
  results: readonly Result[]
): string[] {
  const lines: string[] = [params.title]
  for (const [at, figure] of throughput({ ...params, runs: 0 }).figures.entries()) {
    for (const result of results) {
      const rounds = columnOf(result, at).map(shown).join(', ')
      lines.push(`${figureLine(result, { figure, at })}  rounds: ${rounds}`)
    }
  }
  const own = results.find(({ subject }) => subject === OWN)
  for (const other of results) {
    if (own === undefined || other === own) continue
    const [mine, its] = [own, other].map((result) => shown(median(columnOf(result, 0))))
    const ratio = ratioOf(own, other, 0).toFixed(1)
    lines.push(`${label}, this ${mine} against ${other.subject} ${its}: ${ratio}x`)
  }
  return lines
}

/** Lines of what the server executes for a run alone. */
export async function statementLines(subjects: readonly PeerName[]): Promise<string[]> {
  const lines: string[] = []
  for (const subject of subjects) {
    const { oneStep, furtherStep } = await countApart(subject)
    const counts = `${oneStep} per one-step run, ${Number(furtherStep.toFixed(2))} per further step`
    lines.push(`  ${subject.padEnd(34)} ${counts}`)
  }
  return lines
}
