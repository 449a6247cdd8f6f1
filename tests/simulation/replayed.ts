import type { HistoryRecord } from '../../src/core/history.ts'
import { RunContext } from '../../src/replay/context.ts'
import { Turn, type TurnWants } from '../../src/replay/turn.ts'
import type { Flavour, Plan } from './body_plan.ts'
import { runBody, type Trace } from './random_body.ts'

export interface Replayed {
  wants: TurnWants | null
  trace: Trace
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/** Replays the history of a run that has ended, on a turn of its own; nothing is executed. */
export async function replay(params: {
  runId: string
  plan: Plan
  flavour: Flavour
  history: readonly HistoryRecord[]
}): Promise<Replayed> {
  const { runId, plan, flavour, history } = params
  const settled = { count: 0 }
  const turn = new Turn({
    ...{ history, waits: [], children: new Map(), seenInbox: 0 },
    macrotask: (open, close) => {
      setImmediate(open)
      setImmediate(close)
    },
    monotonic: () => 0,
    fetchOutcomes: async () => [],
    onSettled: () => settled.count++,
  })
  const ctx = new RunContext({
    turn,
    run: { id: runId, workflow: 'root', version: '1', namespace: 'default' },
    maxPayloadBytes: 1_000_000,
    abortSignal: new AbortController().signal,
    log: SILENT,
    now: () => 0,
    callingStep: () => null,
    stepStamp: () => null,
    stepName: (step) => String(step),
    checkAttributes: async (values) => values,
    workflow: (target) => ({ name: String(target), version: '1', origin: null, tags: [] }),
  })
  const trace: Trace = { entries: [], steps: [], ended: false }
  const runStep = () => {
    throw new Error('A step was executed on replay')
  }
  turn.start(() => runBody({ flavour, begin: () => trace, runStep }, ctx, plan))
  while (settled.count === 0) await new Promise((resolve) => setImmediate(resolve))
  return { wants: turn.take(), trace }
}
