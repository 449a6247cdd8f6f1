import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { StepContext } from '../../src/types/step.ts'

/**
 * What the code of steps has done to the world: one line per execution of an attempt, on the disk before the step
 * goes on, in a file that the database knows nothing of.
 */
export class Effects {
  readonly file: string

  constructor(file: string) {
    this.file = file
  }

  add(step: Pick<StepContext, 'id' | 'attempt'>): void {
    const handle = openSync(this.file, 'a')
    writeSync(handle, `${attemptId(step.id, step.attempt)}\n`)
    fsyncSync(handle)
    closeSync(handle)
  }

  /** How often each attempt was executed. */
  counts(): Map<string, number> {
    const counts = new Map<string, number>()
    if (!existsSync(this.file)) return counts
    for (const line of readFileSync(this.file, 'utf8').split('\n').slice(0, -1))
      counts.set(line, (counts.get(line) ?? 0) + 1)
    return counts
  }
}

/** Names one attempt of a step, which is known by `<runId>:<seq>`. */
export function attemptId(stepId: string, attempt: number): string {
  return `${stepId}#${attempt}`
}
