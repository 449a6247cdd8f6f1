import { ForkedProcess } from '../support/forked_process.ts'

/** What the processes of a race come to, once each of them has ended well. */
export interface Race {
  /** Of one count over all processes; NaN if one has none of that name. */
  sum(key: string): number
}

/**
 * Lets processes that run a script on a database begin at one moment, and waits for their counts. Each says `ready`, is
 * told `go` and says what it has done. Rejects with the output of one that ends otherwise.
 */
export async function raceOf(
  count: number,
  script: URL,
  { database, rounds }: { database: string; rounds: number }
): Promise<Race> {
  const names = Array.from({ length: count }, (_, index) => `w${index}`)
  const processes = names.map(
    (name) =>
      new ForkedProcess<'ready' | Record<string, number>>(script, [database, name, String(rounds)])
  )
  try {
    for (const one of processes) await one.heard()
    for (const one of processes) one.tell('go')
    const reports = await Promise.all(processes.map((one) => one.heard()))
    await Promise.all(processes.map((one) => one.ended()))
    const failed = processes.find(({ exitCode }) => exitCode !== 0)
    if (failed) throw new Error(`Ended by ${failed.killedBy ?? failed.exitCode}: ${failed.output}`)
    const done = reports.map((report) => (report === 'ready' ? {} : report))
    return {
      sum: (key) => done.reduce((total, report) => total + (report[key] ?? Number.NaN), 0),
    }
  } finally {
    await Promise.all(processes.map((one) => one.kill()))
  }
}
