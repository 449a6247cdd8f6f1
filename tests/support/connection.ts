import type { Store } from '../../src/contracts/store.ts'

type Method = keyof Store

/**
 * The connection of one application to its database, which a test can cut and which counts what goes through it.
 * `lost` makes calls fail before they reach the database. `frozen` keeps calls waiting, as those of a process that is
 * stopped, until `thaw`.
 */
export class Connection {
  readonly store: Store
  /** Error that calls fail with. */
  #lost = new Map<Method, Error>()
  #frozen = new Map<Method, PromiseWithResolvers<void>>()
  #calls = new Map<Method, number>()
  #called = new Set<() => void>()

  constructor(store: Store) {
    this.store = new Proxy(store, {
      get: (target, key: Method) => {
        const method: unknown = Reflect.get(target, key)
        if (typeof method !== 'function') return method
        if (!METHODS.includes(key)) return method.bind(target)
        return (...args: unknown[]) => this.#through(key, () => method.apply(target, args))
      },
    })
  }

  /** How often a method was called. */
  calls(method: Method): number {
    return this.#calls.get(method) ?? 0
  }

  /** Resolves once a method has been called `count` times more. */
  async called(method: Method, count = 1): Promise<void> {
    const goal = this.calls(method) + count
    while (this.calls(method) < goal) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#called.add(resolve)
      await promise
    }
  }

  lose(error: Error, methods: readonly Method[] = METHODS): void {
    for (const method of methods) this.#lost.set(method, error)
  }

  restore(): void {
    this.#lost.clear()
  }

  freeze(methods: readonly Method[] = METHODS): void {
    for (const method of methods) this.#frozen.set(method, Promise.withResolvers())
  }

  thaw(methods: readonly Method[] = METHODS): void {
    for (const method of methods) {
      this.#frozen.get(method)?.resolve()
      this.#frozen.delete(method)
    }
  }

  async #through(method: Method, call: () => unknown): Promise<unknown> {
    this.#calls.set(method, this.calls(method) + 1)
    for (const resolve of this.#called) resolve()
    this.#called.clear()
    await this.#frozen.get(method)?.promise
    const error = this.#lost.get(method)
    if (error) throw error
    return call()
  }
}

/** What needs the database while an application runs. */
const METHODS: readonly Method[] = [
  'commit',
  'claim',
  'load',
  'childOutcomes',
  'childStates',
  'nextDueIn',
  'offerBlocked',
  'registerWorker',
  'renewWorker',
  'describeWorker',
  'removeWorker',
  'recoverExpired',
  'getRun',
  'inputsOf',
  'statusesOf',
  'heldBy',
  'now',
]
