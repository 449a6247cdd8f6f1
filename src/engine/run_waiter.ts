import { isTerminal, type RunStatus } from '../core/run.ts'
import {
  E_ENGINE_STOPPED,
  E_NO_WORKER,
  E_RUN_FAILED,
  E_RUN_NOT_FOUND,
  E_WAIT_TIMEOUT,
} from '../errors.ts'
import type { EngineContext } from './engine_context.ts'
import { parseDescriptor } from './worker_descriptor.ts'
import { describeRun, type WorkflowRun } from './workflow_run.ts'

const WARN_AFTER_MS = 2_000
const REFUSE_AFTER_MS = 10_000

/**
 * Waits for ends of runs. Those of this process are told by its own writes; for the others one query, whatever the
 * number of waiters, looks at hints of foreign changes and, as a net, at intervals.
 */
export class RunWaiter {
  #context: EngineContext
  #waiting = new Map<string, Set<() => void>>()
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
    for (const waiters of [...this.#waiting.values()]) for (const wake of [...waiters]) wake()
  }

  /** The output of a run, or E_RUN_FAILED. */
  async result(runId: string, timeoutMs?: number): Promise<unknown> {
    const run = await this.wait(runId, timeoutMs)
    if (run.status === 'completed') return run.output
    const { status, error } = run
    const message = error?.message ?? `it is ${status}`
    throw new E_RUN_FAILED({ runId, status, message, code: error?.code, details: error?.details })
  }

  /** The run, once it has ended; in development also once it is blocked. */
  async wait(runId: string, timeoutMs?: number): Promise<WorkflowRun> {
    const woken = Promise.withResolvers<void>()
    const unsubscribe = [
      this.#context.news.onEnded(runId, woken.resolve),
      this.#register(runId, woken.resolve),
      this.#watchService(runId, woken.reject),
      after(timeoutMs, woken.resolve),
    ]
    try {
      const before = await this.#read(runId)
      if (this.#isOver(before.status)) return before
      await woken.promise
      const run = await this.#read(runId)
      if (this.#isOver(run.status)) return run
      throw new E_WAIT_TIMEOUT([runId, timeoutMs ?? 0, run.status])
    } finally {
      for (const stop of unsubscribe) stop()
    }
  }

  #isOver(status: RunStatus): boolean {
    return isTerminal(status) || (status === 'blocked' && this.#context.inDevelopment)
  }

  async #read(runId: string): Promise<WorkflowRun> {
    if (this.#isStopped) throw new E_ENGINE_STOPPED()
    const store = await this.#context.store()
    const run = await store.getRun(runId)
    if (!run) throw new E_RUN_NOT_FOUND([runId])
    return describeRun(run)
  }

  #register(runId: string, wake: () => void): () => void {
    const waiters = this.#waiting.get(runId) ?? new Set()
    this.#waiting.set(runId, waiters.add(wake))
    this.#stopListening ??= this.#context.news.onAnything(() => void this.#look())
    this.#schedule()
    return () => {
      waiters.delete(wake)
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
      void this.#look().finally(() => this.#waiting.size > 0 && this.#schedule())
    }, this.#context.options.pollMs)
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const store = await this.#context.store()
      for (const { runId, status } of await store.statusesOf([...this.#waiting.keys()]))
        if (this.#isOver(status)) for (const wake of this.#waiting.get(runId) ?? []) wake()
    } catch (err) {
      this.#context.log.debug({ err }, 'The runs that are waited for could not be read')
    } finally {
      this.#isLooking = false
    }
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
    const now = await store.now()
    const workers = await store.listWorkers()
    const live = workers.filter(({ lost, until }) => !lost && until > now)
    const isServed = live.some(({ descriptor }) =>
      parseDescriptor(descriptor).claimKeys.includes(run.claimKey)
    )
    const [namespace, workflow, version] = run.claimKey.split(' ')
    const needs = `workflow "${workflow}" version "${version}" in namespace "${namespace}"`
    return isServed ? null : new E_NO_WORKER([runId, needs])
  }
}

function after(ms: number | undefined, fn: () => void): () => void {
  if (ms === undefined) return () => {}
  const timer = setTimeout(fn, Math.min(ms, 2_147_483_647))
  return () => clearTimeout(timer)
}
