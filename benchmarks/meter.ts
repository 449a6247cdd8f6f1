import { mkdir, writeFile } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import { dirname } from 'node:path'

/** What some work took. */
interface Spent {
  seconds: number
  /** Processor time of this process, all of its threads, in microseconds. */
  cpu: number
}

/** Does what is measured, and says what it took. */
export type Meter = (work: () => Promise<unknown>) => Promise<Spent>

export const spent: Meter = async (work) => {
  const begin = performance.now()
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return { seconds: (performance.now() - begin) / 1000, cpu: user + system }
}

/** Writes a profile of the work to a file, for the developer tools of a browser. It slows the work down. */
export function profiledInto(file: string): Meter {
  return async (work) => {
    const session = new Session()
    session.connect()
    await session.post('Profiler.enable')
    await session.post('Profiler.start')
    const cost = await spent(work)
    const { profile } = await session.post('Profiler.stop')
    session.disconnect()
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, JSON.stringify(profile))
    return cost
  }
}
