import assert from 'node:assert/strict'
import type { Flush, LoadedRun, Store, StoredRun } from '../../contracts/store.ts'
import type { Answer, ChangeSet, Write } from '../../core/change_set.ts'
import type { InboxEntry, NewWait, Wait } from '../../core/history.ts'
import type { NewRun, ParentLink, RunRow } from '../../core/run.ts'
import type { StoreCorruption, StoreUnderTest } from './store_under_test.ts'
import {
  CLAIM_KEY,
  COMPLETE,
  newRun,
  parentLink,
  start,
  startLeased,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForAll,
  waitForSignal,
} from './writes.ts'

/** A store under test with the short sentences that its tests are made of. */
export class Scenario {
  readonly store: Store
  readonly corrupt: StoreCorruption

  constructor(private under: StoreUnderTest) {
    this.store = under.store
    this.corrupt = under.corrupt
  }

  another(): Promise<Store> {
    return this.under.another()
  }

  async registerWorker(instance: string, options: { name?: string; takeOver?: boolean } = {}) {
    const { name = instance, takeOver = false } = options
    const lease = { leaseMs: 30_000, descriptor: `{"name":"${name}"}` }
    return this.store.registerWorker({ instance, name, takeOver, ...lease })
  }

  commit(...writes: Write[]): Promise<Flush> {
    return this.store.commit(writes)
  }

  async answers(...writes: Write[]): Promise<Answer['type'][]> {
    const { answers } = await this.store.commit(writes)
    return answers.map(({ type }) => type)
  }

  /** Commits one turn, which must not be lost. */
  async turn(
    row: Pick<RunRow, 'id' | 'token'>,
    changes: Partial<Omit<ChangeSet, 'type' | 'runId'>> = {}
  ) {
    const { answers } = await this.commit(turn(row, changes))
    const [answer] = answers
    assert.equal(answer?.type, 'committed', `the turn of ${row.id}`)
    return answer
  }

  /** A run that nobody has claimed. */
  async pending(id: string, overrides: Partial<NewRun> = {}): Promise<RunRow> {
    return started(await this.commit(start(id, overrides)))
  }

  /** A run leased to worker w1. */
  async running(id: string, overrides: Partial<NewRun> = {}): Promise<RunRow> {
    return started(await this.commit(startLeased(id, overrides)))
  }

  /** A run that is suspended on a wait for a signal at position 0. */
  async waiting(id: string, token: string): Promise<RunRow> {
    const row = await this.running(id)
    await this.turn(row, { opened: [waitForSignal(0, token)], end: SUSPEND })
    return this.row(id)
  }

  /**
   * A parent suspended on all of `count` children that are leased to w1, as `<id>.<index>`; it needs `needs` of
   * their ends, default all.
   */
  async family(
    id: string,
    {
      count,
      needs = count,
      link = {},
    }: { count: number; needs?: number; link?: Partial<ParentLink> }
  ): Promise<RunRow[]> {
    const parent = await this.running(id)
    const workflow = `${id} children`
    const children = Array.from({ length: count }, (_, index) => ({
      run: newRun(`${id}.${index}`, { workflow, parent: parentLink(id, { index, ...link }) }),
      acknowledge: false,
    }))
    const opened = [waitForAll(0, children.length)]
    await this.turn(parent, { opened, children, end: suspendOnEnds(needs) })
    return this.claim({ claimKeys: [newRun('', { workflow }).claimKey], limit: count })
  }

  claim(request: { owner?: string; claimKeys?: string[]; limit?: number } = {}): Promise<RunRow[]> {
    return this.store.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 10, ...request })
  }

  async claimedIds(request: Parameters<Scenario['claim']>[0] = {}): Promise<string[]> {
    const rows = await this.claim(request)
    return rows.map(({ id }) => id)
  }

  async row(id: string): Promise<StoredRun> {
    const run = await this.store.getRun(id)
    assert.ok(run, `run ${id}`)
    return run
  }

  async field<K extends keyof StoredRun>(id: string, name: K): Promise<StoredRun[K]> {
    const row = await this.row(id)
    return row[name]
  }

  async isDue(id: string): Promise<boolean> {
    const dueAt = await this.field(id, 'dueAt')
    return dueAt !== null && dueAt <= (await this.store.now())
  }

  async load(runId: string, options: { resident?: boolean; inboxAfter?: number } = {}) {
    const { resident = false, inboxAfter = 0 } = options
    const [loaded] = await this.store.load([{ runId, resident, inboxAfter }])
    assert.ok(loaded, `run ${runId} is loaded`)
    return loaded satisfies LoadedRun
  }

  async inbox(runId: string): Promise<InboxEntry[]> {
    const { inbox } = await this.load(runId, { resident: true })
    return inbox
  }

  /** Numbers of a run's inbox entries, in the order in which they are given. */
  async numbersOf(runId: string): Promise<number[]> {
    const inbox = await this.inbox(runId)
    return inbox.map(({ no }) => no)
  }

  async waits(runId: string): Promise<Wait[]> {
    const { waits } = await this.load(runId, { resident: true })
    return waits
  }

  /** Ids of the signals in a run's inbox, in order. */
  async signalsOf(runId: string): Promise<string[]> {
    const inbox = await this.inbox(runId)
    return inbox.flatMap((entry) => (entry.kind === 'signal' ? [entry.signalId] : []))
  }

  /** Ids of the kept signals of a token in order, taken out by a run that waits for one after the other. */
  async keptOf(token: string): Promise<string[]> {
    const row = await this.running(`reader of ${token}`)
    const kept: string[] = []
    for (let seq = 0; ; seq++) {
      const opened: NewWait[] = [waitForSignal(seq, token)]
      await this.turn(row, { opened, seenInbox: kept.length })
      const [entry] = await this.inbox(row.id)
      if (entry?.kind !== 'signal') break
      kept.push(entry.signalId)
    }
    await this.turn(row, { seenInbox: kept.length, end: COMPLETE })
    return kept
  }
}

function started({ answers }: Flush): RunRow {
  const [answer] = answers
  assert.ok(answer?.type === 'started' && answer.created, 'the run is started')
  return answer.run
}
