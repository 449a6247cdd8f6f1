import type {
  CancelWrite,
  ChangeSet,
  RequeueWrite,
  ResultWrite,
  SignalSend,
  SignalWrite,
  StartWrite,
} from '../../core/change_set.ts'
import type { Dispatch, StepResult } from '../../core/dispatch.ts'
import type { NewWorker } from '../../contracts/store.ts'
import type { NewRecord, NewWait, OperationKind } from '../../core/history.ts'
import type { NewRun, ParentLink, RunRow } from '../../core/run.ts'

/** The claim key of runs whose workflow a test does not choose. */
export const CLAIM_KEY = claimKeyOf('import')

export function claimKeyOf(workflow: string): string {
  return `default/${workflow}/1`
}

export function newRun(id: string, overrides: Partial<NewRun> = {}): NewRun {
  const workflow = overrides.workflow ?? 'import'
  return {
    id,
    workflow,
    version: '1',
    claimKey: claimKeyOf(workflow),
    namespace: 'default',
    origin: null,
    priority: 1,
    input: '{"v":null}',
    parent: null,
    createdBy: `nonce of ${id}`,
    tags: [],
    ...overrides,
  }
}

/** A worker of a lease of 30 seconds, under a name of its own. */
export function newWorker(instance: string, overrides: Partial<NewWorker> = {}): NewWorker {
  const terms = { name: instance, leaseMs: 30_000, descriptor: '{}', takeOver: false }
  return { instance, ...terms, ...overrides }
}

export function start(id: string, overrides: Partial<NewRun> = {}): StartWrite {
  return { type: 'start', run: newRun(id, overrides), leaseTo: null }
}

export function startLeased(id: string, overrides: Partial<NewRun> = {}): StartWrite {
  return { type: 'start', run: newRun(id, overrides), leaseTo: 'w1' }
}

/** A turn of the run under the token of `row`, which goes on unless `changes` says otherwise. */
export function turn(
  row: Pick<RunRow, 'id' | 'token'>,
  changes: Partial<Omit<ChangeSet, 'type' | 'runId'>> = {}
): ChangeSet {
  return {
    type: 'turn',
    runId: row.id,
    token: row.token,
    records: [],
    opened: [],
    closed: [],
    seenInbox: 0,
    returned: [],
    children: [],
    signals: [],
    end: { kind: 'continue' },
    ...changes,
  }
}

export const COMPLETE = { kind: 'complete', output: '{"v":"done"}' } as const
export const FAIL = { kind: 'fail', error: '{"message":"no"}', errorCode: 'step_failed' } as const
export const DIE = {
  kind: 'die',
  error: '{"message":"lost"}',
  errorCode: 'max_recovery_attempts',
} as const
export const BLOCK = {
  kind: 'block',
  error: '""',
  errorCode: 'non_determinism',
  retryIn: 5,
} as const
export const SUSPEND = { kind: 'suspend', needs: null, dueAt: null, dueIn: null } as const
export const RELEASE = { kind: 'release' } as const

export function suspendOnEnds(needs: number) {
  return { ...SUSPEND, needs }
}

export function record(seq: number, overrides: Partial<NewRecord> = {}): NewRecord {
  return {
    seq,
    kind: 'local_step',
    name: `step ${seq}`,
    after: seq,
    ordinal: seq,
    status: 'completed',
    attempts: 1,
    output: `{"v":${seq}}`,
    error: null,
    durationMs: 0,
    ...overrides,
  }
}

function wait(kind: OperationKind, seq: number, overrides: Partial<NewWait>): NewWait {
  return {
    seq,
    kind,
    name: `${kind} ${seq}`,
    after: 0,
    token: null,
    target: null,
    inputs: null,
    dueIn: null,
    dueAt: null,
    attempts: 0,
    error: null,
    dispatch: null,
    ...overrides,
  }
}

export function sleep(seq: number, dueIn: number): NewWait {
  return wait('sleep', seq, { dueIn })
}

export function sleepUntil(seq: number, dueAt: number): NewWait {
  return wait('sleep', seq, { dueAt })
}

/** A step that was sent to workers; the attempt is in flight unless `attempts` says that it has failed. */
export function dispatched(
  seq: number,
  { attempts = 0, dueIn = 60_000, ...overrides }: DispatchedTerms = {}
): NewWait {
  const dispatch = {
    ...{ generation: 1, attempt: 1, id: `dispatch ${seq}`, redispatches: 0, silenceMs: 60_000 },
    ...overrides,
  }
  return wait('step', seq, { attempts, dueIn, dispatch })
}

type DispatchedTerms = Partial<Dispatch & Pick<NewWait, 'attempts' | 'dueIn'>>

/** What a worker says of the first attempt of such a step. */
export function result(
  runId: string,
  { seq = 0, ...overrides }: Partial<StepResult> = {}
): ResultWrite {
  const key = { runId, seq, generation: 1, attempt: 1, dispatchId: `dispatch ${seq}` }
  const outcome = { status: 'completed' as const, output: '{"v":"done"}' }
  return { type: 'result', result: { ...key, outcome, ...overrides } }
}

export function waitForSignal(seq: number, token: string): NewWait {
  return wait('signal', seq, { token })
}

export function waitForChild(seq: number, target: string): NewWait {
  return wait('child', seq, { target })
}

export function waitForAll(seq: number, inputs: number): NewWait {
  return wait('all', seq, { inputs })
}

export function signalSend(id: string, token: string, payload = `{"v":"${id}"}`): SignalSend {
  return { id, token, payload }
}

export function signal(id: string, token: string): SignalWrite {
  return { type: 'signal', signal: signalSend(id, token) }
}

export function cancel(
  runId: string,
  options: { compensate?: boolean; ifOverdue?: boolean } = {}
): CancelWrite {
  const { compensate = false, ifOverdue = false } = options
  const error = { error: '{"message":"stop"}', errorCode: 'cancelled' }
  return { type: 'cancel', runId, compensate, ifOverdue, ...error }
}

export function requeue(
  { id, token }: Pick<RunRow, 'id' | 'token'>,
  options: Partial<Pick<RequeueWrite, 'retire' | 'record' | 'timeoutMs'>> = {}
): RequeueWrite {
  return { type: 'requeue', runId: id, token, retire: [], record: null, ...options }
}

export function parentLink(runId: string, overrides: Partial<ParentLink> = {}): ParentLink {
  return { runId, seq: 0, index: 0, awaited: true, failFast: false, ...overrides }
}
