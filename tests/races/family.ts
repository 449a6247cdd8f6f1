import type { ChangeSet } from '../../src/core/change_set.ts'
import { isTerminal, type RunRow } from '../../src/core/run.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import {
  claimKeyOf,
  COMPLETE,
  newRun,
  parentLink,
  record,
  startLeased,
  suspendOnEnds,
  turn,
  waitForAll,
} from '../../src/testing/conformance/writes.ts'

const COUNT = 8
const WINDOW = 4

/**
 * A parent that has eight children under one position, four of them in flight at a time, and its children, each under a
 * claim key of its own kind: what the engine writes for `ctx.all`, without an engine.
 */
export class Family {
  readonly id: string
  readonly parentKey: string
  readonly childKey: string

  constructor(id: string) {
    this.id = id
    this.parentKey = claimKeyOf('import')
    this.childKey = claimKeyOf(`child of ${id}`)
  }

  /** Stores the parent, leased to `w1`, and its first children; it is suspended on the ends of half of them. */
  async begin(store: LucidStore): Promise<void> {
    await store.commit([startLeased(this.id)])
    await store.commit([
      turn(
        { id: this.id, token: 1 },
        {
          opened: [waitForAll(0, COUNT)],
          children: this.#children(0, WINDOW),
          end: suspendOnEnds(WINDOW / 2),
        }
      ),
    ])
  }

  claimChildren(store: LucidStore, owner: string): Promise<RunRow[]> {
    return store.claim({ owner, claimKeys: [this.childKey], limit: COUNT })
  }

  async claimParent(store: LucidStore, owner: string): Promise<RunRow | undefined> {
    const rows = await store.claim({ owner, claimKeys: [this.parentKey], limit: 1 })
    return rows[0]
  }

  endOf(child: RunRow): ChangeSet {
    return turn(child, { records: [record(0)], end: COMPLETE })
  }

  /** What the parent writes when it finds its inbox and its children as they are now. */
  async turnOf(store: LucidStore, parent: RunRow): Promise<ChangeSet> {
    const [loaded] = await store.load([{ runId: this.id, resident: true, inboxAfter: 0 }])
    const seenInbox = Math.max(parent.inboxSeq, loaded?.inbox.at(-1)?.no ?? 0)
    const states = await store.childStates({ runId: this.id, seq: 0 })
    const ended = states.filter(({ status }) => isTerminal(status)).length
    if (ended === COUNT)
      return turn(parent, { seenInbox, records: [record(0)], closed: [0], end: COMPLETE })
    const started = Math.min(COUNT, ended + WINDOW)
    const inFlight = started - ended
    const needs = started === COUNT ? inFlight : Math.ceil(inFlight / 2)
    const children = this.#children(states.length, started)
    return turn(parent, { seenInbox, children, end: suspendOnEnds(needs) })
  }

  /** Does whatever is due, and ends whatever `running` holds, until nothing is left to do. */
  async playOut(store: LucidStore, params: { owner: string; running: RunRow[] }): Promise<void> {
    const { owner, running } = params
    for (;;) {
      const children = [...running.splice(0), ...(await this.claimChildren(store, owner))]
      for (const child of children) await store.commit([this.endOf(child)])
      const parent = await this.claimParent(store, owner)
      if (parent) await store.commit([await this.turnOf(store, parent)])
      if (!parent && children.length === 0) return
    }
  }

  #children(from: number, to: number) {
    return Array.from({ length: Math.max(0, to - from) }, (_, number) => {
      const index = from + number
      const parent = parentLink(this.id, { index })
      const run = newRun(`${this.id}.${index}`, { workflow: `child of ${this.id}`, parent })
      return { run, acknowledge: false }
    })
  }
}
