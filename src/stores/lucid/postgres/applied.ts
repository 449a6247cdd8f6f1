import type {
  Answer,
  ChangeSet,
  RequeueWrite,
  SignalWrite,
  StartWrite,
  Write,
} from '../../../core/change_set.ts'
import { isTerminal, type RunRow } from '../../../core/run.ts'
import { E_SIGNAL_IN_DOUBT } from '../../../errors.ts'
import type { Doubts } from './doubts.ts'
import { HeldElsewhereError, type LockedRows } from './locked_rows.ts'
import type { PgStatement } from './session.ts'

const RECORDS = `select h.run_id, h.seq, h.token from unnest(?::text[], ?::integer[]) as asked (run_id, seq)
  join durable_history h on h.run_id = asked.run_id and h.generation = 0 and h.seq = asked.seq`
const WAITS = `select w.run_id, w.seq, w.attempts, w.dispatch_id from unnest(?::text[], ?::integer[]) as asked (run_id, seq)
  join durable_waits w on w.run_id = asked.run_id and w.seq = asked.seq`

/**
 * Finds out which writes have been applied whose answer was lost with the connection. It is asked under the locks of
 * their runs: only the holder of a token writes under it, and a change set is applied whole, so that any part of one
 * proves all of it.
 */
export class Applied {
  #doubts: Doubts
  #turns: ChangeSet[]
  #records = new Map<string, number>()
  #waits = new Map<string, string>()

  constructor(writes: readonly Write[], doubts: Doubts) {
    this.#doubts = doubts
    const turns = writes.filter((write) => write.type === 'turn')
    this.#turns = turns.filter((write) => doubts.has(write))
  }

  /** To be run after the locks are held. */
  statements(): PgStatement[] {
    if (this.#turns.length === 0) return []
    const records = this.#turns.flatMap(({ runId, records: own }) =>
      own.map(({ seq }) => ({ runId, seq }))
    )
    const opened = this.#turns.flatMap(({ runId, opened: own }) =>
      own.map(({ seq }) => ({ runId, seq }))
    )
    const pairs = (of: { runId: string; seq: number }[]) => [
      of.map(({ runId }) => runId),
      of.map(({ seq }) => seq),
    ]
    return [
      { sql: RECORDS, values: pairs(records) },
      { sql: WAITS, values: pairs(opened) },
    ]
  }

  read(results: readonly { rows: unknown[] }[]): void {
    const [records, waits] = results.map(({ rows }) => rows)
    for (const row of (records ?? []) as { run_id: string; seq: number; token: number }[])
      this.#records.set(`${row.run_id} ${row.seq}`, row.token)
    for (const { run_id: runId, seq, ...row } of (waits ?? []) as WaitState[])
      this.#waits.set(`${runId} ${seq}`, stateOf(row.attempts, row.dispatch_id))
  }

  /**
   * The answer of a write that was applied, or of which nobody can know; null = it was not, or doing it again does no
   * harm.
   */
  answer(write: Write, state: LockedRows): Answer | null {
    switch (write.type) {
      case 'start':
        return started(write, state)
      case 'turn': {
        const row = state.stored(write.runId)
        if (!row || !this.#isApplied(write, row, state)) return null
        return { type: 'committed', inboxSeq: row.inboxSeq, now: state.now }
      }
      case 'cancel': {
        const isCancelled = state.stored(write.runId)?.status === 'cancelled'
        return isCancelled ? { type: 'cancelled', outcome: 'cancelled' } : null
      }
      case 'requeue':
        return requeued(write, state)
      case 'signal':
        return this.#inDoubt(write, state)
      case 'result':
      case 'wake':
        return null
    }
  }

  /**
   * A signal leaves nothing once it has been taken: one that is not found may have been, and would be delivered twice.
   * One that is found is known to the fold, which does not repeat it.
   */
  #inDoubt(write: SignalWrite, state: LockedRows): Answer | null {
    const cause = this.#doubts.causeOf(write)
    const { id, token } = write.signal
    if (cause === undefined || isKnown(write, state)) return null
    return { type: 'refused', error: new E_SIGNAL_IN_DOUBT([id, token], { cause }) }
  }

  #isApplied(write: ChangeSet, row: RunRow, state: LockedRows): boolean {
    const { runId, token, records, children, opened, end } = write
    const [record] = records
    if (record) return this.#records.get(`${runId} ${record.seq}`) === token
    if (row.token !== token) return false
    if (end.kind !== 'continue') return row.status !== 'running'
    const [child] = children
    if (child) return state.stored(child.run.id)?.createdBy === child.run.createdBy
    const [wait] = opened
    if (wait === undefined) return false
    const asOpened = stateOf(wait.attempts, wait.dispatch?.id ?? null)
    return this.#waits.get(`${runId} ${wait.seq}`) === asOpened
  }
}

interface WaitState {
  run_id: string
  seq: number
  attempts: number
  dispatch_id: string | null
}

/** What tells one opening of a wait from the one before. */
function stateOf(attempts: number, dispatchId: string | null): string {
  return `${attempts} ${dispatchId}`
}

function started({ run: { id, createdBy } }: StartWrite, state: LockedRows): Answer | null {
  const run = state.stored(id)
  return run?.createdBy === createdBy ? { type: 'started', created: true, run } : null
}

/** Nothing but a requeue leaves a terminal status, and each raises the token by one. */
function requeued({ runId, token }: RequeueWrite, state: LockedRows): Answer | null {
  const row = state.stored(runId)
  return row && row.token > token ? { type: 'requeued', done: true } : null
}

/** Where others hold the token, the fold finds that too, and has the write wait for it. */
function isKnown({ signal: { id, token } }: SignalWrite, state: LockedRows): boolean {
  try {
    return state.hasSignal(id, token)
  } catch (error) {
    if (error instanceof HeldElsewhereError) return true
    throw error
  }
}

/** Runs that an applied write has ended. */
export function endedBy(write: Write, state: LockedRows): string[] {
  if (write.type !== 'turn' && write.type !== 'cancel') return []
  const row = state.stored(write.runId)
  return row && isTerminal(row.status) ? [row.id] : []
}
