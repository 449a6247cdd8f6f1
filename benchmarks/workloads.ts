import type { SubjectFactory } from './subjects.ts'

/** One of the numbers that a workload gives. */
interface Figure {
  name: string
  unit: string
}

/** One thing to measure. */
export interface Workload {
  title: string
  figures: readonly Figure[]
  /** Runs it once on a new subject; the numbers in the order of `figures`. */
  measure: (make: SubjectFactory) => Promise<number[]>
}

interface Spent {
  seconds: number
  /** Processor time of this process, all of its threads, in microseconds. */
  cpu: number
}

async function spent(work: () => Promise<unknown>): Promise<Spent> {
  const begin = performance.now()
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return { seconds: (performance.now() - begin) / 1000, cpu: user + system }
}

/** `count` of something per second, and the processor time of each, which other load on the machine disturbs less. */
function rates(count: number, { seconds, cpu }: Spent): number[] {
  return [count / seconds, cpu / count]
}

function rateFigures(counted: keyof typeof ONE): Figure[] {
  return [
    { name: `${counted}/s`, unit: '' },
    { name: `cpu per ${ONE[counted]}`, unit: 'µs' },
  ]
}

const ONE = { runs: 'run', steps: 'step', children: 'child' } as const

/** So many runs, a fixed number of them in flight at any time. */
export function throughput(params: {
  title: string
  counted: 'runs' | 'steps'
  runs: number
  steps: number
  inFlight: number
}): Workload {
  const { title, counted, runs, steps, inFlight } = params
  const measure = async (make: SubjectFactory) => {
    const subject = await make({ inFlight })
    let next = 0
    const lane = async () => {
      while (next < runs) await subject.run(`run-${next++}`, steps)
    }
    const cost = await spent(() => Promise.all(Array.from({ length: inFlight }, lane)))
    await subject.close()
    return rates(counted === 'runs' ? runs : runs * steps, cost)
  }
  return { title, measure, figures: rateFigures(counted) }
}

/** One parent with many children of one step each. */
export function fanOut(params: { title: string; children: number }): Workload {
  const { title, children } = params
  const measure = async (make: SubjectFactory) => {
    const subject = await make({ inFlight: 50 })
    const cost = await spent(() => subject.fanOut('parent', children))
    await subject.close()
    return rates(children, cost)
  }
  return { title, measure, figures: rateFigures('children') }
}

/** One-step runs, one at a time: from start to result. */
export function latency(params: { title: string; runs: number }): Workload {
  const measure = async (make: SubjectFactory) => {
    const subject = await make({ inFlight: 50 })
    const times: number[] = []
    for (let run = 0; run < params.runs; run++) {
      const { seconds } = await spent(() => subject.run(`run-${run}`, 1))
      times.push(seconds * 1000)
    }
    await subject.close()
    times.sort((one, other) => one - other)
    const at = (share: number) => times[Math.floor(share * (times.length - 1))] ?? Number.NaN
    return [at(0.5), at(0.99)]
  }
  const figures = ['p50', 'p99'].map((name) => ({ name, unit: 'ms' }))
  return { title: params.title, measure, figures }
}
