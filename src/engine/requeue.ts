import type { Store, StoredRun } from '../contracts/store.ts'
import { type EarlierChild, recordOf } from '../core/earlier_children.ts'
import { hashOf } from '../core/hash.ts'
import { planRequeue } from '../core/requeue.ts'
import { decodeError } from '../core/serialized_error.ts'
import type { ParentLink, RunRow } from '../core/run.ts'
import { isRequeueable } from '../core/transition.ts'
import { E_RUN_NOT_FOUND } from '../errors.ts'
import type { CommitQueue } from './commit_queue.ts'
import type { Registry } from './registry.ts'

const PAGE = 1_000

type Child = RunRow & { parent: ParentLink }

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
    const kept = new Set(plan.kept)
    const repeated = new Set(plan.repeated)
    const earlier: EarlierChild[] = []
    for await (const page of this.#children(runId)) {
      const again = page.filter(({ parent }) => !kept.has(parent.seq))
      // Children first: the operation that waits for them finds them live, or over, when it is called again.
      for (const child of again)
        if (child.parent.awaited && isRequeueable(child)) await this.run(child.id)
      const behind = again.filter(({ parent }) => !repeated.has(parent.seq))
      earlier.push(...(await this.#described(behind)))
    }
    const requeues = live.filter(({ kind }) => kind === 'requeue').length
    const answer = await this.#commits.write({
      ...{ type: 'requeue', runId, token: run.token, retire: plan.retire },
      record: earlier.length === 0 ? null : recordOf(earlier, requeues),
      timeoutMs: await this.#timeoutOf(run),
    })
    return answer.done
  }

  /** Undefined: this application has no such workflow. */
  async #timeoutOf({ workflow, version }: StoredRun): Promise<number | null | undefined> {
    if (!this.#registry.workflow(workflow, version)) await this.#discover()
    return this.#registry.workflow(workflow, version)?.timeoutMs
  }

  async #described(children: readonly Child[]): Promise<EarlierChild[]> {
    const inputs = await this.#store.inputsOf(children.map(({ id }) => id))
    const hashes = new Map(inputs.map(({ runId, input }) => [runId, hashOf(input)]))
    return children.map(({ id, workflow, parent: { seq, index } }) => ({
      ...{ id, workflow, seq, index },
      inputHash: hashes.get(id)!,
    }))
  }

  /** But for handler runs of its failures, whose positions are below zero: they are over with what they handled. */
  async *#children(parentId: string): AsyncGenerator<Child[]> {
    let after: string | undefined
    do {
      const page = await this.#store.listRuns({ parentId, limit: PAGE, after })
      yield page.runs.flatMap((row) =>
        row.parent && row.parent.seq >= 0 ? [{ ...row, parent: row.parent }] : []
      )
      after = page.next ?? undefined
    } while (after !== undefined)
  }
}
