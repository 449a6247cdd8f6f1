import { join } from 'node:path'
import { figureLine, median, shown } from '../rounds.ts'
import { type ThroughputParams, throughput } from '../workloads.ts'
import { OWN, type PeerName } from './peer_subjects.ts'
import { countApart, measureApart } from './peer_processes.ts'

export interface Comparison {
  params: Omit<ThroughputParams, 'runs'>
  /** How many are measured: a number that takes the subject some seconds. */
  runs: Readonly<Record<PeerName, number>>
  /** What the first figure is called in the line that compares. */
  label: string
}

/**
 * Measures subjects in turn, in every second round the other way about, so that what else happens on the machine meets
 * all of them. The last lines give the median of the ratios that the rounds gave.
 */
export async function compare(
  { params, runs, label }: Comparison,
  options: { subjects: readonly PeerName[]; rounds: number; profile?: string }
): Promise<string[]> {
  const results = new Map(options.subjects.map((subject) => [subject, [] as number[][]]))
  for (let round = 0; round < options.rounds; round++) {
    const order = round % 2 === 0 ? options.subjects : options.subjects.toReversed()
    for (const subject of order) {
      const profile = subject === OWN ? profileOf(round) : null
      const { figures } = await measureApart(
        subject,
        { ...params, runs: runs[subject] },
        { profile }
      )
      results.get(subject)?.push(figures)
    }
  }
  return [...figureLines(), ...ratioLines()]

  function profileOf(round: number): string | null {
    if (options.profile === undefined) return null
    const name = `${params.title.split(' ')[0]}-${round}.cpuprofile`
    return join(options.profile, name)
  }

  function column(subject: PeerName, at: number): number[] {
    return (results.get(subject) ?? []).map((figures) => figures[at] ?? Number.NaN)
  }

  function figureLines(): string[] {
    const lines: string[] = [params.title]
    for (const [at, figure] of throughput({ ...params, runs: 0 }).figures.entries()) {
      for (const subject of options.subjects) {
        const all = column(subject, at)
        const line = figureLine({ subject, figure, all })
        lines.push(`${line}  rounds: ${all.map(shown).join(' ')}`)
      }
    }
    return lines
  }

  function ratioLines(): string[] {
    const own = column(OWN, 0)
    const others = options.subjects.filter((subject) => subject !== OWN)
    if (own.length === 0) return []
    return others.map((other) => {
      const its = column(other, 0)
      const ratios = its.map((value, round) => (own[round] ?? Number.NaN) / value)
      const pair = `this ${shown(median(own))} against ${other} ${shown(median(its))}`
      return `${label}, ${pair}: ${median(ratios).toFixed(1)}x`
    })
  }
}

/** Lines of what the server executes for a run alone. */
export async function statementLines(subjects: readonly PeerName[]): Promise<string[]> {
  const lines: string[] = []
  for (const subject of subjects) {
    const { oneStep, furtherStep } = await countApart(subject)
    const counts = `${oneStep} per one-step run, ${Number(furtherStep.toFixed(2))} per further step`
    lines.push(`  ${subject.padEnd(30)} ${counts}`)
  }
  return lines
}
