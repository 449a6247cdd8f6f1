import type { Flush, Store } from '../../src/contracts/store.ts'
import type { Answer, Write } from '../../src/core/change_set.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import type { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'

/**
 * What happens to a process at one of its commits. `before`: it is gone before the commit is applied. `after`: it is
 * gone when the commit was applied, before the answer reaches it. `stale`: it stands still before the commit until
 * others have taken its runs over, then goes on. `unreachable`: the connection breaks before the commit.
 */
export type Cut = 'before' | 'after' | 'stale' | 'unreachable'

type ChangeListener = Parameters<Store['onForeignChange']>[0]

export interface CutListener {
  /** Something is asked of the store, or answered. */
  active(): void
  /** A commit begins. */
  commit(writes: readonly Write[]): Cut | null
  /** A commit has been applied, and would be answered so. */
  applied(writes: readonly Write[], answers: readonly Answer[]): void
  /** The process is gone, or stands still. */
  cut(cut: Cut): void
  /** Whether an answer of the store is under way until it is let through. */
  delays(method: string, args: readonly unknown[]): boolean
}

/** One process's connection, which can break. What is asked of it afterwards is never answered, until `end`. */
export class CutStore {
  readonly memory: MemoryStore
  /** What the process is given. */
  readonly store: Store
  #listener: CutListener
  #isDown = false
  #hasEnded = false
  #waiting: (() => void)[] = []
  /** Answers that are under way. */
  readonly late = new Set<() => void>()

  constructor(database: MemoryDatabase, listener: CutListener) {
    this.memory = new MemoryStore(database)
    this.#listener = listener
    this.store = new Proxy(this.memory, {
      get: (target, key) => {
        if (key === 'onForeignChange') return (listen: ChangeListener) => this.#onChange(listen)
        const method: unknown = Reflect.get(target, key)
        if (typeof method !== 'function') return method
        return (...args: unknown[]) =>
          this.#call(String(key), () => method.apply(target, args), args)
      },
    })
  }

  /** From now on nothing is answered. */
  goSilent(): void {
    this.#isDown = true
  }

  /** Answers, late, what was asked since the process stood still. */
  goOn(): void {
    this.#isDown = false
    for (const answer of this.#waiting.splice(0)) answer()
  }

  /** Nothing is asked any more: what still waits for an answer learns that everything is over. */
  end(): void {
    this.#hasEnded = true
    this.#isDown = true
    for (const answer of this.#waiting.splice(0)) answer()
    for (const arrive of this.late) arrive()
  }

  async #call(name: string, run: () => unknown, args: unknown[]): Promise<unknown> {
    this.#listener.active()
    if (this.#isDown) await this.#up()
    if (this.#hasEnded) return this.#refuse(name, args)
    const answer =
      name === 'commit' ? this.#commit(args[0] as Write[], run as () => Promise<Flush>) : run()
    const value = await answer
    if (!this.#hasEnded && this.#listener.delays(name, args)) await this.#arrival()
    this.#listener.active()
    return value
  }

  async #commit(writes: readonly Write[], run: () => Promise<Flush>): Promise<Flush> {
    const cut = this.#listener.commit(writes)
    if (cut === 'unreachable') throw new Error('The connection broke before the commit')
    if (cut === 'before' || cut === 'stale') {
      await this.#down(cut)
      if (this.#hasEnded) return allLost(writes)
    }
    const flushed = await run()
    this.#listener.applied(writes, flushed.answers)
    if (cut === 'after') {
      await this.#down(cut)
      return allLost(writes)
    }
    return flushed
  }

  async #arrival(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.late.add(resolve)
    await promise
    this.late.delete(resolve)
  }

  #down(cut: Cut): Promise<void> {
    this.#isDown = true
    this.#listener.cut(cut)
    return this.#up()
  }

  #up(): Promise<void> {
    if (this.#hasEnded) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push(resolve)
    return promise
  }

  #refuse(name: string, args: unknown[]): unknown {
    if (name === 'close') return undefined
    if (name !== 'commit') throw new Error('The simulation is over')
    return allLost(args[0] as Write[])
  }

  #onChange(listen: ChangeListener): () => void {
    return this.memory.onForeignChange((...news: Parameters<ChangeListener>) => {
      if (!this.#isDown) listen(...news)
    })
  }
}

function allLost(writes: readonly Write[]): Flush {
  const news = {
    due: new Set<string>(),
    dueIn: null,
    inbox: new Set<string>(),
    revoked: new Map<string, number>(),
  }
  return { answers: writes.map(() => ({ type: 'lost' })), news: { ...news, ended: new Set() } }
}
