import { isDeepStrictEqual } from 'node:util'
import { type Meter, spent } from './meter.ts'
import type { StepSubject, SubjectFactory } from './subject.ts'
import type { Outcome, Workload } from './workloads.ts'

/**
 * Executes a workload on a new subject. Rejects unless the database then holds the runs that were asked for, each
 * completed, and each of their steps.
 */
export async function measureOn<Made extends StepSubject>(
  workload: Workload<Made>,
  make: SubjectFactory<Made>,
  meter: Meter = spent
): Promise<Outcome> {
  const subject = await make({ inFlight: workload.inFlight })
  try {
    const outcome = await workload.measure(subject, meter)
    const tally = await subject.tally()
    if (!isDeepStrictEqual(tally, outcome.asked)) {
      const [found, asked] = [tally, outcome.asked].map((one) => JSON.stringify(one))
      throw new Error(`${workload.title}: the database holds ${found}, not ${asked}`)
    }
    return outcome
  } finally {
    await subject.close()
  }
}
