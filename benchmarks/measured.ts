import { isDeepStrictEqual } from 'node:util'
import { type Meter, spent } from './meter.ts'
import type { StepSubject, SubjectFactory, Tally } from './subject.ts'
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
    expectTally(await subject.tally(), outcome.asked)
    return outcome
  } finally {
    await subject.close()
  }
}

/** Throws when a database does not hold what was asked for. */
export function expectTally(tally: Tally, asked: Tally): void {
  if (isDeepStrictEqual(tally, asked)) return
  throw new Error(`The database holds ${JSON.stringify(tally)}, not ${JSON.stringify(asked)}`)
}
