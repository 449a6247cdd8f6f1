import type { ChildOutcome, HistoryRecord, Wait } from '../../src/core/history.ts'
import { encode } from '../../src/core/payload.ts'
import { type ContextParams, RunContext } from '../../src/replay/context.ts'
import { Turn, type TurnWants } from '../../src/replay/turn.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/** A turn on its own: what it wants is looked at, and nothing is written or started. */
export class PlayedTurn {
  readonly turn: Turn
  readonly ctx: WorkflowCtx
  /** How often the turn has said that there is something to take. */
  settlements = 0
  #settled = Promise.withResolvers<void>()

  constructor(
    body: (ctx: WorkflowCtx) => unknown,
    past: {
      history?: HistoryRecord[]
      waits?: Wait[]
      seenInbox?: number
      /** What the rows of children say. */
      outcomes?: ChildOutcome[] | Promise<ChildOutcome[]>
      /** Default: every step is executed beside its body. */
      dispatching?: ContextParams['dispatching']
    } = {}
  ) {
    this.turn = new Turn({
      history: past.history ?? [],
      waits: past.waits ?? [],
      children: new Map(),
      seenInbox: past.seenInbox ?? 0,
      macrotask: (open, close) => {
        setImmediate(open)
        setImmediate(close)
      },
      monotonic: () => 0,
      fetchOutcomes: async () => past.outcomes ?? [],
      onSettled: () => {
        this.settlements++
        this.#settled.resolve()
      },
    })
    this.ctx = new RunContext({
      turn: this.turn,
      run: { id: 'run', workflow: 'main', version: '1', namespace: 'default' },
      maxPayloadBytes: 1_000_000,
      abortSignal: new AbortController().signal,
      log: SILENT,
      dispatching: past.dispatching ?? null,
      now: () => 1_000,
      callingStep: () => null,
      stepStamp: () => null,
      stepName: (step) => String(step),
      checkAttributes: async (values) => values,
      workflow: (target) => ({ name: String(target), version: '1', origin: null, tags: [] }),
    })
    this.turn.start(() => body(this.ctx))
  }

  /** Waits for the windows that are under way, and takes what the turn wants. */
  async settled(): Promise<TurnWants> {
    for (;;) {
      await this.#settled.promise
      this.#settled = Promise.withResolvers()
      const wants = this.turn.take()
      if (wants) return wants
    }
  }
}

/** A recorded local step. */
export function recorded(
  step: Pick<HistoryRecord, 'seq' | 'name' | 'after'> & Partial<HistoryRecord>
): HistoryRecord {
  return {
    ...{ kind: 'local_step', ordinal: step.seq, status: 'completed', attempts: 1 },
    ...{ output: encode(step.name), error: null, durationMs: 0 },
    ...{ generation: 0, token: 1, startedAt: 0, endedAt: 0 },
    ...step,
  }
}

/** An operation that stands open. */
export function waiting(wait: Pick<Wait, 'seq' | 'kind' | 'name' | 'after'> & Partial<Wait>): Wait {
  return {
    ...{
      token: null,
      target: null,
      inputs: null,
      dueAt: null,
      attempts: 0,
      error: null,
      dispatch: null,
      openedAt: 0,
    },
    ...wait,
  }
}
