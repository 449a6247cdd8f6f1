import type { Meter } from './meter.ts'
import type { StepSubject, Subject, Tally } from './subject.ts'

/** One of the numbers that a workload gives. */
export interface Figure {
  name: string
  unit: string
}

/** What one execution of a workload gave. */
export interface Outcome {
  /** In the order of the workload's own. */
  figures: number[]
  /** What the database must hold now: what was asked for, a warm-up included. */
  asked: Tally
}

/** One thing to measure, on subjects that can do what it needs. */
export interface Workload<Needed extends StepSubject = Subject> {
  title: string
  figures: readonly Figure[]
  /** Runs that it has in flight at any time. */
  inFlight: number
  /** Executes it once on a new subject. */
  measure: (subject: Needed, meter: Meter) => Promise<Outcome>
}

/** `count` of something per second, and the processor time of each, which other load on the machine disturbs less. */
function rates(count: number, { seconds, cpu }: { seconds: number; cpu: number }): number[] {
  return [count / seconds, cpu / count]
}

function rateFigures(counted: keyof typeof ONE): Figure[] {
  return [
    { name: `${counted}/s`, unit: '' },
    { name: `cpu per ${ONE[counted]}`, unit: 'µs' },
  ]
}

const ONE = { runs: 'run', steps: 'step', children: 'child' } as const

export interface ThroughputParams {
  title: string
  counted: 'runs' | 'steps'
  runs: number
  steps: number
  inFlight: number
  /** For so long, the same is done before and not measured. Default 0. */
  warmUpMs?: number
}

/** So many runs, a fixed number of them in flight at any time. */
export function throughput(params: ThroughputParams): Workload<StepSubject> {
  const { title, counted, runs, steps, inFlight, warmUpMs = 0 } = params
  const measure = async (subject: StepSubject, meter: Meter) => {
    let started = 0
    const keepInFlight = (isEnough: () => boolean) => {
      const lane = async () => {
        while (!isEnough()) await subject.run(`run-${started++}`, steps)
      }
      return Promise.all(Array.from({ length: inFlight }, lane))
    }
    const end = performance.now() + warmUpMs
    await keepInFlight(() => performance.now() >= end)
    const all = started + runs
    const cost = await meter(() => keepInFlight(() => started >= all))
    return {
      figures: rates(counted === 'runs' ? runs : runs * steps, cost),
      asked: { runs: all, completed: all, records: all * steps },
    }
  }
  return { title, inFlight, measure, figures: rateFigures(counted) }
}

/** One parent with many children of one step each. */
export function fanOut(params: { title: string; children: number }): Workload {
  const { title, children } = params
  const measure = async (subject: Subject, meter: Meter) => {
    const cost = await meter(() => subject.fanOut('parent', children))
    const rows = children + 1
    return {
      figures: rates(children, cost),
      asked: { runs: rows, completed: rows, records: rows },
    }
  }
  return { title, inFlight: 50, measure, figures: rateFigures('children') }
}

/** One-step runs, one at a time: from start to result. */
export function latency(params: { title: string; runs: number }): Workload<StepSubject> {
  const { title, runs } = params
  const measure = async (subject: StepSubject, meter: Meter) => {
    const times: number[] = []
    for (let run = 0; run < runs; run++) {
      const { seconds } = await meter(() => subject.run(`run-${run}`, 1))
      times.push(seconds * 1000)
    }
    times.sort((one, other) => one - other)
    const at = (share: number) => times[Math.floor(share * (times.length - 1))] ?? Number.NaN
    return {
      figures: [at(0.5), at(0.99)],
      asked: { runs, completed: runs, records: runs },
    }
  }
  const figures = ['p50', 'p99'].map((name) => ({ name, unit: 'ms' }))
  return { title, inFlight: 50, measure, figures }
}
