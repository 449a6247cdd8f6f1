import type { FlushNews } from '../core/change_set.ts'

type Listener = () => void
/** `output` is the encoded output of a run that this process has just completed; null = it has to be read. */
type EndListener = (output: string | null) => void
type RevokedListener = (runId: string, token: number) => void

/**
 * What happened to runs, told inside this process: a hint that a look at the store is worth it. Missing one costs
 * time, never a run: polling finds the same.
 */
export class RunNews {
  #due = new Set<(news: FlushNews) => void>()
  #anything = new Set<Listener>()
  #inbox = new Map<string, Set<Listener>>()
  #revoked = new Set<RevokedListener>()
  #ended = new Map<string, Set<EndListener>>()

  /** Runs became due, or will in `dueIn` ms. */
  onDue(listener: (news: FlushNews) => void): () => void {
    this.#due.add(listener)
    return () => this.#due.delete(listener)
  }

  /** Something may have changed without this process: another one wrote, or the clock was moved. */
  onAnything(listener: Listener): () => void {
    this.#anything.add(listener)
    return () => this.#anything.delete(listener)
  }

  /** Something was sent to a running run. */
  onInbox(runId: string, listener: Listener): () => void {
    return subscribe(this.#inbox, runId, listener)
  }

  /** A run was taken away from whoever executes it, or keeps it in memory while it waits, under a token below this one. */
  onRevoked(listener: RevokedListener): () => void {
    this.#revoked.add(listener)
    return () => this.#revoked.delete(listener)
  }

  onEnded(runId: string, listener: EndListener): () => void {
    return subscribe(this.#ended, runId, listener)
  }

  /** @param outputs encoded outputs of runs that the same flush completed, where they are at hand */
  publish(news: FlushNews, outputs: ReadonlyMap<string, string>): void {
    if (news.due.size > 0 || news.dueIn !== null) for (const listener of this.#due) listener(news)
    for (const runId of news.inbox) tell(this.#inbox.get(runId))
    for (const [runId, token] of news.revoked)
      for (const listener of this.#revoked) listener(runId, token)
    for (const runId of news.ended) {
      const output = outputs.get(runId) ?? null
      for (const listener of this.#ended.get(runId) ?? []) listener(output)
    }
  }

  anything(): void {
    tell(this.#anything)
  }
}

function subscribe<L>(listeners: Map<string, Set<L>>, key: string, listener: L): () => void {
  const set = listeners.get(key) ?? new Set<L>()
  listeners.set(key, set.add(listener))
  return () => {
    set.delete(listener)
    if (set.size === 0 && listeners.get(key) === set) listeners.delete(key)
  }
}

function tell(listeners: ReadonlySet<Listener> | undefined): void {
  for (const listener of [...(listeners ?? [])]) listener()
}
