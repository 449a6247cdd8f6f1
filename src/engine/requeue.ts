import type { Store, StoredRun } from '../contracts/store.ts'
import { planRequeue } from '../core/requeue.ts'
import { decodeError } from '../core/serialized_error.ts'
import { isRequeueable } from '../core/transition.ts'
import { E_RUN_NOT_FOUND } from '../errors.ts'
import type { CommitQueue } from './commit_queue.ts'
import type { Registry } from './registry.ts'

const PAGE = 1_000

/** Makes failed and dead runs live again, with the failed children that they will wait for again. */
export class Requeue {
  #store: Store
  #commits: CommitQueue
  #registry: Registry
  #discover: () => Promise<void>

  constructor(params: {
    store: Store
    commits: CommitQueue
    registry: Registry
    discover: () => Promise<void>
  }) {
    this.#store = params.store
    this.#commits = params.commits
    this.#registry = params.registry
    this.#discover = params.discover
  }

  /** Resolves to false where nothing is to be done: the run has ended otherwise, or runs. Throws E_RUN_NOT_FOUND. */
  async run(runId: string): Promise<boolean> {
    const run = await this.#store.getRun(runId)
    if (!run) throw new E_RUN_NOT_FOUND([runId])
    if (!isRequeueable(run)) {
      const answer = await this.#commits.write({ type: 'wake', runId })
      return answer.done
    }
    const history = await this.#store.getHistory(runId)
    const live = history?.records.filter(({ generation }) => generation === 0) ?? []
    const plan = planRequeue(live, run.error === null ? null : decodeError(run.error))
    // Children first: the operation that waits for them finds them live, or over, when it is called again.
    const kept = new Set(plan.kept)
    for await (const child of this.#failedChildren(runId))
      if (!kept.has(child.seq)) await this.run(child.id)
    const { token } = run
    const timeoutMs = await this.#timeoutOf(run)
    const { retire } = plan
    const answer = await this.#commits.write({ type: 'requeue', runId, token, retire, timeoutMs })
    return answer.done
  }

  /** Undefined: this application has no such workflow. */
  async #timeoutOf({ workflow, version }: StoredRun): Promise<number | null | undefined> {
    if (!this.#registry.workflow(workflow, version)) await this.#discover()
    return this.#registry.workflow(workflow, version)?.timeoutMs
  }

  /** Handler runs of its failures have positions below zero: they are over with what they handled. */
  async *#failedChildren(parentId: string): AsyncGenerator<{ id: string; seq: number }> {
    let after: string | undefined
    do {
      const page = await this.#store.listRuns({ parentId, limit: PAGE, after })
      for (const row of page.runs) {
        const { id, parent } = row
        if (parent?.awaited && parent.seq >= 0 && isRequeueable(row)) yield { id, seq: parent.seq }
      }
      after = page.next ?? undefined
    } while (after !== undefined)
  }
}
