import type { RunInsert, RunUpdate } from '../../core/plan.ts'
import type { RunPayloads, RunRow } from '../../core/run.ts'
import type { StoredAttribute } from '../../core/search_attributes.ts'
import { DueIndex } from './due_index.ts'

const NOTHING: ReadonlySet<string> = new Set()

/** The rows of runs, their payloads and tags, and the indexes that the queries need. */
export class RunTable {
  readonly due = new DueIndex()
  #rows = new Map<string, RunRow>()
  #payloads = new Map<string, RunPayloads>()
  #tags = new Map<string, readonly string[]>()
  #attributes = new Map<string, Map<string, StoredAttribute>>()
  #children = new Map<string, Set<string>>()
  #owned = new Map<string, Set<string>>()

  insert({ row, tags, input, output, error }: RunInsert) {
    this.#payloads.set(row.id, { input, output, error })
    this.#tags.set(row.id, [...new Set(tags)])
    if (row.parent) addTo(this.#children, row.parent.runId, row.id)
    this.replace(row)
  }

  update({ row, output, error }: RunUpdate) {
    const payloads = this.#payloads.get(row.id)
    if (payloads && output !== undefined) payloads.output = output
    if (payloads && error !== undefined) payloads.error = error
    this.replace(row)
  }

  replace(row: RunRow) {
    const before = this.#rows.get(row.id)
    this.#rows.set(row.id, copyOf(row))
    this.due.replace(before, row)
    if (before?.owner === row.owner) return
    if (before && before.owner !== null) removeFrom(this.#owned, before.owner, row.id)
    if (row.owner !== null) addTo(this.#owned, row.owner, row.id)
  }

  delete(id: string) {
    const row = this.#rows.get(id)
    if (!row) return
    this.due.replace(row, { ...row, dueAt: null })
    this.#rows.delete(id)
    this.#payloads.delete(id)
    this.#tags.delete(id)
    this.#attributes.delete(id)
    if (row.parent) removeFrom(this.#children, row.parent.runId, id)
    if (row.owner !== null) removeFrom(this.#owned, row.owner, id)
  }

  get(id: string): RunRow | undefined {
    const row = this.#rows.get(id)
    return row && copyOf(row)
  }

  payloads(id: string): RunPayloads | undefined {
    return this.#payloads.get(id)
  }

  addTag(id: string, tag: string) {
    this.#tags.set(id, [...new Set([...this.tags(id), tag])])
  }

  removeTags(id: string, prefix: string) {
    this.#tags.set(
      id,
      this.tags(id).filter((tag) => !tag.startsWith(prefix))
    )
  }

  setAttributes(id: string, values: Readonly<Record<string, StoredAttribute | null>>) {
    const attributes = this.#attributes.get(id) ?? new Map<string, StoredAttribute>()
    this.#attributes.set(id, attributes)
    for (const [name, value] of Object.entries(values)) {
      if (value === null) attributes.delete(name)
      else attributes.set(name, value)
    }
  }

  attributes(id: string): Record<string, StoredAttribute> {
    return Object.fromEntries(this.#attributes.get(id) ?? [])
  }

  tags(id: string): readonly string[] {
    return this.#tags.get(id) ?? []
  }

  /** Every row; not to be changed by the caller. */
  rows(): Iterable<Readonly<RunRow>> {
    return this.#rows.values()
  }

  /** Children of every operation of a run, in order of their start. */
  childrenOf(parentId: string): RunRow[] {
    return this.#pick(this.#children.get(parentId) ?? NOTHING)
  }

  /** Instances that own runs. */
  owners(): string[] {
    return [...this.#owned.keys()]
  }

  ownedBy(instance: string): RunRow[] {
    return this.#pick(this.#owned.get(instance) ?? NOTHING)
  }

  #pick(ids: ReadonlySet<string>): RunRow[] {
    return [...ids].map((id) => this.get(id)).filter((row) => row !== undefined)
  }
}

function copyOf(row: RunRow): RunRow {
  return { ...row, parent: row.parent && { ...row.parent } }
}

function addTo(index: Map<string, Set<string>>, key: string, value: string) {
  const values = index.get(key)
  if (values) values.add(value)
  else index.set(key, new Set([value]))
}

function removeFrom(index: Map<string, Set<string>>, key: string, value: string) {
  const values = index.get(key)
  values?.delete(value)
  if (values?.size === 0) index.delete(key)
}
