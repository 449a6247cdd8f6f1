import type { LoadedRun, Store } from '../contracts/store.ts'
import type { NewChild } from '../core/change_set.ts'
import type { RunRow } from '../core/run.ts'
import type { SerializedError } from '../core/serialized_error.ts'
import { E_UNREADABLE_PAYLOAD } from '../errors.ts'
import type { FailureRouting } from './failure_routing.ts'
import type { Registry } from './registry.ts'
import type { EngineLogger } from './run_logger.ts'
import { RunWriter, type RunWriterParams } from './run_writer.ts'
import { describeRun, type WorkflowRun } from './workflow_run.ts'

export type DeadListener = (run: WorkflowRun) => unknown

interface DeadLettersParams extends RunWriterParams {
  store: () => Promise<Pick<Store, 'getRun'>>
  registry: Registry
  routing: FailureRouting
  log: EngineLogger
}

/** Ends runs that were lost once too often, and hands them to their dead-letter workflow. */
export class DeadLetters {
  #params: DeadLettersParams
  #listeners = new Set<DeadListener>()

  constructor(params: DeadLettersParams) {
    this.#params = params
  }

  /** Calls `listener` when a run is dead-lettered by this process, until the returned function is called. */
  onDead(listener: DeadListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Ends the run and stores its handler run in one write; then tells listeners; then lets the handler start. */
  async bury(row: RunRow, loaded: LoadedRun): Promise<void> {
    const { commits, registry, log } = this.#params
    const writer = new RunWriter(row, this.#params)
    const { error, errorCode } = writer.failWith(causeOfDeath(row, loaded))
    const children = await this.#handlerRun(row, { error, input: loaded.input! })
    // Nothing of its inbox counts as read: signals in it go on to the next wait.
    const ending = await writer.end({ children }, { kind: 'die', error, errorCode })
    if (ending !== 'ended') return
    await this.#tell(row.id)
    for (const { run } of children) {
      if (!registry.workflow(run.workflow, run.version))
        log.warn(
          `Run "${row.id}" is dead, and its handler "${run.workflow}" version "${run.version}" is not registered ` +
            `here: run "${run.id}" waits for a worker that has it. Register the workflow, or correct its name`
        )
      await commits.write({ type: 'wake', runId: run.id }).catch((err: unknown) => {
        log.debug({ err }, `Run "${run.id}" could not be woken; it begins by itself a little later`)
      })
    }
  }

  /** A run whose handler cannot even be named is dead all the same: executing it again is what must not happen. */
  async #handlerRun(
    row: RunRow,
    letter: { error: string; input: string }
  ): Promise<readonly NewChild[]> {
    const { routing, log } = this.#params
    try {
      return await routing.deadLetter(row, letter)
    } catch (err) {
      const problem =
        err instanceof E_UNREADABLE_PAYLOAD
          ? 'its input cannot be read, so no handler run is started. Take care of the run by hand'
          : 'its deadLetterWorkflow could not be resolved, so no handler run is started. Correct the option, and ' +
            'start the handler by hand'
      log.error({ err }, `Run "${row.id}" is dead, and ${problem}`)
      return []
    }
  }

  async #tell(runId: string): Promise<void> {
    if (this.#listeners.size === 0) return
    const run = await this.#read(runId)
    if (!run) return
    for (const listener of this.#listeners) {
      try {
        // What is returned may be any thenable, such as a query that begins when it is awaited.
        Promise.resolve(listener(run)).catch((err: unknown) => this.#swallow(err))
      } catch (err) {
        this.#swallow(err)
      }
    }
  }

  /** The run is dead whether or not it can be read now. */
  async #read(runId: string): Promise<WorkflowRun | null> {
    const { log, store: open } = this.#params
    try {
      const store = await open()
      const stored = await store.getRun(runId)
      return stored && describeRun(stored)
    } catch (err) {
      log.error({ err }, `Run "${runId}" is dead, and could not be read for the onDead listeners`)
      return null
    }
  }

  #swallow(err: unknown): void {
    this.#params.log.debug({ err }, 'An onDead listener has failed')
  }
}

const STEPS: ReadonlySet<string> = new Set(['local_step', 'step', 'compensation'])

/** The steps and compensations that had been started and not recorded are what was running when the process died. */
function causeOfDeath(row: RunRow, { waits }: LoadedRun): SerializedError {
  const steps = waits.filter(({ kind, dueAt }) => STEPS.has(kind) && dueAt === null)
  const names = steps
    .map(({ kind, name }) => (kind === 'compensation' ? `"${name}", being undone` : `"${name}"`))
    .join(', ')
  const lost = row.recoveryAttempts
  return {
    name: 'MaxRecoveryAttempts',
    message:
      `The run was lost ${lost} times while a worker executed it` +
      (names === '' ? '' : `; running was step ${names}`),
    code: 'max_recovery_attempts',
    details: { lost, steps: steps.map(({ seq, name }) => ({ seq, name })) },
    retryable: false,
  }
}
