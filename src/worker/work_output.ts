import type { RunLogger } from '../types/step.ts'
import { isTrouble, RunLog } from './run_log.ts'
import type { WorkCounts, WorkOutput } from './work_report.ts'
import {
  describeNoWorkflows,
  describeWaiting,
  describeWorker,
  type WorkerDescription,
} from './worker_description.ts'

/** Where a worker process says what it is and what it does. */
export interface WorkerOutput extends WorkOutput {
  started(worker: WorkerDescription): void
  /** @param dueIn ms; null = nothing has a due time */
  waiting(dueIn: number | null): void
}

/** Log lines for people, through the application's logger. */
export function logOutput(params: {
  log: RunLogger
  fields: boolean
  workflowsPath: string
}): WorkerOutput {
  const { log, fields } = params
  const runs = new RunLog(params)
  const info = (facts: object, line: string) => (fields ? log.info(facts, line) : log.info(line))
  return {
    started(worker) {
      info({ worker }, describeWorker(worker))
      if (worker.workflows.length === 0) log.warn(describeNoWorkflows(params.workflowsPath))
    },
    waiting: (dueIn) => log.info(describeWaiting(dueIn)),
    event: (event) => runs.write(event),
    summary: (counts) => info(counts, `since the start: ${inWords(counts)}`),
  }
}

/** One object per event, under the names of the events. */
export function jsonOutput(print: (line: object) => void): WorkerOutput {
  return {
    started: (worker) => print({ event: 'worker.started', ...worker }),
    waiting: (dueIn) => print({ event: 'worker.waiting', dueIn }),
    event: print,
    summary: (counts) => print({ event: 'worker.summary', ...counts }),
  }
}

/** The same without the events of runs that go well. */
export function quiet(output: WorkerOutput): WorkerOutput {
  return {
    ...output,
    event: (event) => {
      if (isTrouble(event)) output.event(event)
    },
  }
}

function inWords(counts: WorkCounts): string {
  return Object.entries(counts)
    .filter(([kind, count]) => count > 0 || kind === 'started')
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ')
}
