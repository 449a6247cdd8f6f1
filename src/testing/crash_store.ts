import type { Store } from '../contracts/store.ts'

/**
 * Where around a write the process ends. `before`: the database has not been asked. `answered`: it has applied the
 * write, and nobody has been told. `after`: the answer has been used for whatever follows from it at once (a step's
 * code has begun, say), and nothing else.
 */
export const CRASH_MOMENTS = ['before', 'answered', 'after'] as const
export type CrashMoment = (typeof CRASH_MOMENTS)[number]

export interface CrashPoint {
  moment: CrashMoment
  /** Number of the write, from 1, counted from the making of the store. */
  write: number
}

/** A store that ends the process at one of its writes. */
export interface CrashingStore<S extends Store> {
  store: S
  /** How many writes have been applied. */
  readonly writes: number
}

interface CrashParams {
  /** Null: only counts. */
  point: CrashPoint | null
  /** Ends the process. Default: SIGKILL to the own process, which runs no handler and flushes nothing. */
  kill?: () => void
}

/**
 * Wraps a store so that the process ends at a write of the caller's choice. These are counted as
 * writes: calls of `commit` with at least one write, claims that took runs, and announcements of a worker, which take
 * over the runs of its predecessor. Renewals, recovery passes and claims that found nothing are not counted: their
 * number depends on time alone.
 */
export function crashingStore<S extends Store>(
  store: S,
  { point, kill = killProcess }: CrashParams
): CrashingStore<S> {
  let writes = 0
  /** Two may be under way at once, where the database is asked by several connections. */
  let begun = 0
  const isAt = (moment: CrashMoment, write: number) =>
    point !== null && point.moment === moment && point.write === write

  function begin(): void {
    begun++
    if (isAt('before', begun)) kill()
  }

  async function counted<T>(call: () => Promise<T>, isWrite: (result: T) => boolean): Promise<T> {
    const result = await call()
    if (!isWrite(result)) return result
    writes++
    begun = Math.max(begun, writes)
    if (isAt('answered', writes)) kill()
    if (isAt('after', writes)) setImmediate(kill)
    return result
  }

  const crashing: Pick<Store, 'commit' | 'claim' | 'registerWorker'> = {
    commit(batch) {
      if (batch.length > 0) begin()
      return counted(
        () => store.commit(batch),
        () => batch.length > 0
      )
    },
    async claim(request) {
      const isAsked = point?.moment === 'before' && request.limit > 0
      if (isAsked && (await store.nextDueIn(request.claimKeys)) === 0) begin()
      return counted(
        () => store.claim(request),
        (rows) => rows.length > 0
      )
    },
    registerWorker(worker) {
      begin()
      return counted(
        () => store.registerWorker(worker),
        () => true
      )
    },
  }

  return {
    store: new Proxy(store, {
      get(target, key) {
        const own: unknown = Reflect.get(crashing, key) ?? Reflect.get(target, key)
        return typeof own === 'function' ? own.bind(target) : own
      },
    }),
    get writes() {
      return writes
    },
  }
}

function killProcess(): void {
  process.kill(process.pid, 'SIGKILL')
}
