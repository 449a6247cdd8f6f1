import { E_INVALID_PRIORITY } from '../errors.ts'

/** Statuses of a run. The last four are terminal: nothing but an explicit requeue leaves `failed` or `dead`. */
export const RUN_STATUSES = [
  'pending',
  'running',
  'suspended',
  'blocked',
  'completed',
  'failed',
  'cancelled',
  'dead',
] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

export function isRunStatus(value: unknown): value is RunStatus {
  return RUN_STATUSES.some((status) => status === value)
}

/** What a turn of the run does: run its body, undo it, or follow the handler its failure was routed to. */
export type RunPhase = 'body' | 'unwinding' | 'following'

export const PRIORITIES = [0, 1, 2, 3] as const
/** Lower is sooner. */
export type RunPriority = (typeof PRIORITIES)[number]

/** Returns `value` if it is a priority; else throws `E_INVALID_PRIORITY`: no worker would ever claim the run. */
export function checkPriority(value: unknown): RunPriority {
  const priority = PRIORITIES.find((known) => known === value)
  if (priority === undefined) throw new E_INVALID_PRIORITY([String(value)])
  return priority
}

export const DEFAULT_PRIORITY: RunPriority = 1

/** The layout of rows and history that this version writes and claims. */
export const RUN_FORMAT = 1

const TERMINAL: ReadonlySet<RunStatus> = new Set(['completed', 'failed', 'cancelled', 'dead'])

export function isTerminal(status: RunStatus): boolean {
  return TERMINAL.has(status)
}

/** The operation of another run that started this one. */
export interface ParentLink {
  runId: string
  seq: number
  /** Index inside `ctx.all`; 0 for a plain child. */
  index: number
  /** The parent gets an inbox entry when this run ends; false for `ctx.startChild`. */
  awaited: boolean
  /** A failure of this child wakes the parent at once, whatever its `wakeSeq`. */
  failFast: boolean
}

/** Why a run exists that takes care of another one. */
export interface HandledRun {
  runId: string
  /** `on_error`: the other run follows this one and settles with its outcome. `dead_letter`: it is over. */
  as: 'on_error' | 'dead_letter'
}

/** A run without its payloads, as lists give it. Instants are milliseconds UTC of the database's clock. */
export interface RunSummary {
  id: string
  workflow: string
  version: string
  namespace: string
  /** The application that registered the workflow: a label. */
  origin: string | null
  status: RunStatus
  phase: RunPhase
  priority: RunPriority
  /** When the run is to be claimed (start, wake, retry, recovery); null = nothing to do by time. */
  dueAt: number | null
  /** Instance id of the worker that holds the lease; null = none. */
  owner: string | null
  /** How often the run was claimed again because it had been lost with its worker. */
  recoveryAttempts: number
  parent: ParentLink | null
  /** The run this one was started to take care of. */
  handles: HandledRun | null
  /** Workflows of the failures that led to this run by failure routes, oldest first; stops loops. */
  routeChain: readonly string[]
  /** How often a failure of this run was handed to a handler run. */
  handoffs: number
  /** When the run is cancelled with `execution_timeout`; null = never. */
  deadlineAt: number | null
  /** Why it failed, was cancelled, died, or is blocked: the code of its error, or its name where it has none. */
  errorCode: string | null
  createdAt: number
  /** When a worker first took it up. */
  startedAt: number | null
  updatedAt: number
  endedAt: number | null
}

/** A run as it is stored, without its payloads: with what only the engine needs. */
export interface RunRow extends RunSummary {
  /** Namespace, workflow and version in one indexed value: what a worker claims by. */
  claimKey: string
  /** Grows at every claim; a write under an older token is refused. */
  token: number
  /**
   * When it was lost by its worker beside a step that others were executing, and was not counted for it; null = it was
   * not, or something has been recorded since.
   */
  parkedAt: number | null
  /** Number of the newest inbox entry ever sent to this run. */
  inboxSeq: number
  /**
   * While suspended on children: their entries make the run due when `inboxSeq` has reached this.
   * Null = any entry does. Any entry that is not the end of a child does in any case.
   */
  wakeSeq: number | null
  /** A nonce per start call, so that a repeated start can be told from another caller's. */
  createdBy: string
  format: number
}

/** Encoded payloads of a run. */
export interface RunPayloads {
  input: string
  output: string | null
  error: string | null
}

/** A run that somebody wants to exist. */
export interface NewRun {
  id: string
  workflow: string
  version: string
  claimKey: string
  namespace: string
  origin: string | null
  priority: RunPriority
  /** Encoded. */
  input: string
  parent: ParentLink | null
  createdBy: string
  tags: readonly string[]
  /** Due this many ms after the write. Default 0. */
  dueIn?: number | undefined
  handles?: HandledRun | null | undefined
  routeChain?: readonly string[] | undefined
  /** Cancelled with `execution_timeout` this many ms after the write. Default never. */
  timeoutMs?: number | null | undefined
}
