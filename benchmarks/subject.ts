/** What a database holds, counted in its rows. */
export interface Tally {
  runs: number
  /** Those of the runs that have completed. */
  completed: number
  /** What is recorded of their steps, and of a fan-out as a whole, each at a position of its own. */
  records: number
}

/** Something that executes runs of steps, to be put next to others that do the same. */
export interface StepSubject {
  /** A run of so many steps, one after the other, from its start to its result. */
  run(id: string, steps: number): Promise<void>
  tally(): Promise<Tally>
  close(): Promise<void>
}

/** One that has children too. */
export interface Subject extends StepSubject {
  /** A run with so many children of one step each, from its start to its result. */
  fanOut(id: string, children: number): Promise<void>
}

/** Makes a subject on an empty database. */
export type SubjectFactory<Made extends StepSubject = Subject> = (params: {
  inFlight: number
}) => Promise<Made>

export function expectResult(found: number, expected: number): void {
  if (found !== expected) throw new Error(`The run returned ${found}, not ${expected}`)
}
