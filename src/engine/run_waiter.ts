import { clearTimeout, setImmediate, setTimeout } from 'node:timers'
import type { RunStanding, StoredRun } from '../contracts/store.ts'
import { decode } from '../core/payload.ts'
import { claimKeyInWords } from '../core/name.ts'
import { isTerminal, type RunStatus } from '../core/run.ts'
import {
  E_ENGINE_STOPPED,
  E_NO_WORKER,
  E_RUN_FAILED,
  E_RUN_NOT_FOUND,
  E_WAIT_TIMEOUT,
} from '../errors.ts'
import { inCleanContext } from './clean_context.ts'
import type { EngineContext } from './engine_context.ts'
import { servedKeys } from './worker_descriptor.ts'
import { describeRun, type WorkflowRun } from './workflow_run.ts'

const WARN_AFTER_MS = 2_000
const REFUSE_AFTER_MS = 10_000

/** Somebody who waits for one run. */
interface Waiter {
  /** Whether the store has been asked about the run since the waiting began. */
  isKnown: boolean
  /** `output` is what a run that ended well returned, encoded; null = it has to be read. */
  wake(output: string | null): void
  refuse(error: unknown): void
}

/**
 * Waits for ends of runs. Those of this process are told by its own writes, with what the runs returned; for the
 * others one query, whatever the number of waiters, looks when waiting begins, at hints of foreign changes and, as a
 * net, at intervals.
 */
export class RunWaiter {
  #context: EngineContext
  #waiting = new Map<string, Set<Waiter>>()
  /** Runs to look at. */
  #unseen = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #stopListening: (() => void) | null = null
  #isLooking = false
  #isStopped = false

  constructor(context: EngineContext) {
    this.#context = context
  }

  /** Ends all waiting. */
  stop(): void {
    this.#isStopped = true
    const waiters = [...this.#waiting.values()].flatMap((set) => [...set])
    for (const waiter of waiters) waiter.wake(null)
  }

  /** The output of a run, or E_RUN_FAILED. */
  async result(runId: string, timeoutMs?: number): Promise<unknown> {
    const output = await this.#end(runId, timeoutMs)
    if (output !== null) return decode(output)
    const run = await this.#readEnded(runId, timeoutMs)
    if (run.status === 'completed') return run.output === null ? undefined : decode(run.output)
    const { status, error } = describeRun(run)
    const message = error?.message ?? `it is ${status}`
    throw new E_RUN_FAILED({ runId, status, message, code: error?.code, details: error?.details })
  }

  /** The run, once it has ended; in development also once it is blocked. */
  async wait(runId: string, timeoutMs?: number): Promise<WorkflowRun> {
    await this.#end(runId, timeoutMs)
    return describeRun(await this.#readEnded(runId, timeoutMs))
  }

  /** Resolves when the run has ended, or the time is over: to its encoded output where that is at hand, else null. */
  async #end(runId: string, timeoutMs?: number): Promise<string | null> {
    if (this.#isStopped) throw new E_ENGINE_STOPPED()
    const { promise, resolve, reject } = Promise.withResolvers<string | null>()
    const unsubscribe = [
      this.#context.news.onEnded(runId, resolve),
      this.#register(runId, { isKnown: false, wake: resolve, refuse: reject }),
      this.#watchService(runId, reject),
      after(timeoutMs, () => resolve(null)),
    ]
    try {
      return await promise
    } finally {
      for (const stop of unsubscribe) stop()
    }
  }

  #isOver(status: RunStatus): boolean {
    return isTerminal(status) || (status === 'blocked' && this.#context.inDevelopment)
  }

  async #readEnded(runId: string, timeoutMs = 0): Promise<StoredRun> {
    if (this.#isStopped) throw new E_ENGINE_STOPPED()
    const store = await this.#context.store()
    const run = await store.getRun(runId)
    if (!run) throw new E_RUN_NOT_FOUND([runId])
    if (!this.#isOver(run.status)) throw new E_WAIT_TIMEOUT([runId, timeoutMs, run.status])
    return run
  }

  #register(runId: string, waiter: Waiter): () => void {
    const waiters = this.#waiting.get(runId) ?? new Set()
    this.#waiting.set(runId, waiters.add(waiter))
    this.#stopListening ??= this.#context.news.onAnything(() => this.#lookAtAll())
    this.#schedule()
    if (this.#context.starter?.executes(runId)) waiter.isKnown = true
    else this.#look([runId])
    return () => {
      waiters.delete(waiter)
      if (waiters.size === 0 && this.#waiting.get(runId) === waiters) this.#waiting.delete(runId)
      if (this.#waiting.size > 0) return
      clearTimeout(this.#timer)
      this.#timer = undefined
      this.#stopListening?.()
      this.#stopListening = null
    }
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#lookAtAll()
      if (this.#waiting.size > 0) this.#schedule()
    }, this.#context.options.pollMs)
  }

  #lookAtAll(): void {
    this.#look(this.#waiting.keys())
  }

  /** Those who ask in one turn of the event loop, and those who ask during a query, share the next. */
  #look(runIds: Iterable<string>): void {
    for (const runId of runIds) this.#unseen.add(runId)
    if (this.#isLooking) return
    this.#isLooking = true
    void inCleanContext(() => this.#lookWhileAsked())
  }

  async #lookWhileAsked(): Promise<void> {
    while (this.#unseen.size > 0) {
      await new Promise((resolve) => setImmediate(resolve))
      const runIds = [...this.#unseen].filter((runId) => this.#waiting.has(runId))
      this.#unseen.clear()
      if (runIds.length === 0) continue
      try {
        const store = await this.#context.store()
        this.#tell(runIds, await store.statusesOf(runIds))
      } catch (err) {
        this.#context.log.debug({ err }, 'The runs that are waited for could not be read')
        this.#refuseUnknown(runIds, err)
      }
    }
    this.#isLooking = false
  }

  #tell(runIds: readonly string[], standings: readonly RunStanding[]): void {
    const statuses = new Map(standings.map(({ runId, status }) => [runId, status]))
    for (const runId of runIds) {
      const status = statuses.get(runId)
      for (const waiter of this.#waiting.get(runId) ?? []) {
        waiter.isKnown = true
        if (status === undefined) waiter.refuse(new E_RUN_NOT_FOUND([runId]))
        else if (this.#isOver(status)) waiter.wake(null)
      }
    }
  }

  /** Whoever has just begun to wait is told that the store cannot be asked; those who wait already go on. */
  #refuseUnknown(runIds: readonly string[], error: unknown): void {
    for (const runId of runIds)
      for (const waiter of this.#waiting.get(runId) ?? []) if (!waiter.isKnown) waiter.refuse(error)
  }

  /** Says that nobody serves the run, after a while; in development gives up soon after. */
  #watchService(runId: string, refuse: (error: Error) => void): () => void {
    const { log, inDevelopment } = this.#context
    const check = (then: (error: Error) => void) => () =>
      void this.#unserved(runId).then(
        (error) => error && then(error),
        (err) => log.debug({ err }, 'The live workers could not be read')
      )
    const stopWarning = after(
      WARN_AFTER_MS,
      check((error) => log.warn(error.message))
    )
    const stopRefusing = after(inDevelopment ? REFUSE_AFTER_MS : undefined, check(refuse))
    return () => {
      stopWarning()
      stopRefusing()
    }
  }

  async #unserved(runId: string): Promise<Error | null> {
    const store = await this.#context.store()
    const [run] = await store.statusesOf([runId])
    if (run?.status !== 'pending') return null
    const served = await servedKeys(store)
    return served.has(run.claimKey) ? null : new E_NO_WORKER([runId, claimKeyInWords(run.claimKey)])
  }
}

function after(ms: number | undefined, fn: () => void): () => void {
  if (ms === undefined) return () => {}
  const timer = setTimeout(fn, Math.min(ms, 2_147_483_647))
  return () => clearTimeout(timer)
}
