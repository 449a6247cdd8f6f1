import type { SubjectFactory } from './subjects.ts'

/** One thing to measure. Higher is better for rates (`/s`), lower for times. */
export interface Workload {
  title: string
  unit: string
  /** Runs it on a new subject and gives the figures, in the order of `figures`. */
  measure: (make: SubjectFactory) => Promise<number[]>
  /** What the figures are called; one without a name of its own is ''. */
  figures: readonly string[]
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  await work()
  return (performance.now() - begin) / 1000
}

/** So many runs, a fixed number of them in flight at any time. */
export function throughput(params: {
  title: string
  unit: 'runs/s' | 'steps/s'
  runs: number
  steps: number
  inFlight: number
}): Workload {
  const { title, unit, runs, steps, inFlight } = params
  const measure = async (make: SubjectFactory) => {
    const subject = await make({ inFlight })
    let next = 0
    const lane = async () => {
      while (next < runs) await subject.run(`run-${next++}`, steps)
    }
    const seconds = await timed(() => Promise.all(Array.from({ length: inFlight }, lane)))
    await subject.close()
    return [(unit === 'runs/s' ? runs : runs * steps) / seconds]
  }
  return { title, unit, measure, figures: [''] }
}

/** One-step runs, one at a time: from start to result. */
export function latency(params: { title: string; runs: number }): Workload {
  const measure = async (make: SubjectFactory) => {
    const subject = await make({ inFlight: 50 })
    const times: number[] = []
    for (let run = 0; run < params.runs; run++)
      times.push(await timed(() => subject.run(`run-${run}`, 1)))
    await subject.close()
    times.sort((one, other) => one - other)
    const at = (share: number) => (times[Math.floor(share * (times.length - 1))] ?? 0) * 1000
    return [at(0.5), at(0.99)]
  }
  return { title: params.title, unit: 'ms', measure, figures: ['p50', 'p99'] }
}

/** One parent with many children of one step. */
export function fanOut(params: { title: string; children: number }): Workload {
  const { title, children } = params
  const measure = async (make: SubjectFactory) => {
    const subject = await make({ inFlight: 50 })
    const seconds = await timed(() => subject.fanOut('parent', children))
    await subject.close()
    return [children / seconds]
  }
  return { title, unit: 'children/s', measure, figures: [''] }
}
