import { existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { StepContext } from '../../src/types/step.ts'

/** One execution of an attempt. */
export interface Effect {
  attempt: string
  pid: number
}

/**
 * What the code of steps has done to the world: one line per execution of an attempt, in a file that the database
 * knows nothing of. Several processes may write to it.
 */
export class Effects {
  #file: string
  #sync: boolean
  #handle: number | undefined

  /** @param params.sync each line is on the disk before the step goes on; default true. A killed process loses none either way. */
  constructor(file: string, params: { sync?: boolean } = {}) {
    this.#file = file
    this.#sync = params.sync ?? true
  }

  add(step: Pick<StepContext, 'id' | 'attempt'>): void {
    this.#handle ??= openSync(this.#file, 'a')
    writeSync(this.#handle, `${attemptId(step.id, step.attempt)} ${process.pid}\n`)
    if (this.#sync) fsyncSync(this.#handle)
  }

  /** In the order in which they happened. */
  list(): Effect[] {
    if (!existsSync(this.#file)) return []
    const lines = readFileSync(this.#file, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => {
      const [attempt = '', pid] = line.split(' ')
      return { attempt, pid: Number(pid) }
    })
  }

  /** How often each attempt was executed. */
  counts(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { attempt } of this.list()) counts.set(attempt, (counts.get(attempt) ?? 0) + 1)
    return counts
  }
}

/** Names one attempt of a step, which is known by `<runId>:<seq>`. */
export function attemptId(stepId: string, attempt: number): string {
  return `${stepId}#${attempt}`
}
