import type { NewChild } from '../core/change_set.ts'
import { parseDuration } from '../core/duration.ts'
import { type Instant, parseInstant } from '../core/instant.ts'
import { checkOptions, type KeysOf } from '../core/known_options.ts'
import { checkName, claimKey } from '../core/name.ts'
import { decode, encode } from '../core/payload.ts'
import { seededRandom, seededUuid } from '../core/random.ts'
import { DEFAULT_PRIORITY, type RunRow } from '../core/run.ts'
import type { SearchAttributes } from '../core/search_attributes.ts'
import { checkStepTerms } from '../core/step_terms.ts'
import { E_NESTED_OPERATION } from '../errors.ts'
import type { AllOptions, ChildHandle, WorkflowCtx } from '../types/context.ts'
import type { RunLogger, StepCall, StepContext } from '../types/step.ts'
import type { WorkflowTarget } from '../types/workflow.ts'
import type { Compensation, Operation } from './operation.ts'
import { allOperation, checkAllOptions } from './operations/all.ts'
import { attributesOperation } from './operations/attributes.ts'
import { type ChildFactory, childOperation, startChildOperation } from './operations/child.ts'
import { DispatchedStep, type Dispatching } from './operations/dispatched_step.ts'
import { sendSignalOperation, signalOperation } from './operations/signal.ts'
import { sleepOperation } from './operations/sleep.ts'
import { stepOperation } from './operations/step.ts'
import type { Turn } from './turn.ts'

/** A workflow as a run of it names it. */
export interface NamedWorkflow {
  name: string
  version: string
  origin: string | null
  tags: readonly string[]
  /** Runs are cancelled after this time, in ms; null = never. */
  timeoutMs?: number | null
}

/** What a context needs to know of the process it lives in. */
export interface ContextParams {
  turn: Turn
  run: Pick<RunRow, 'id' | 'workflow' | 'version' | 'namespace'>
  maxPayloadBytes: number
  abortSignal: AbortSignal
  log: RunLogger
  /** Ms UTC of the store's clock, never going back. */
  now: () => number
  /** Name of the step whose code is calling; null = none. */
  callingStep: () => string | null
  stepName: (step: unknown) => string
  /** Name of the step that a function is; null = it is none. */
  stepStamp: (fn: unknown) => string | null
  workflow: (target: WorkflowTarget) => NamedWorkflow
  /** Null, the default: every step is executed beside its body. */
  dispatching?: Dispatching | null
  /** Search attributes as they are stored; rejects with SchemaValidationError. */
  checkAttributes: (values: unknown) => Promise<unknown>
}

const CALL_OPTIONS: KeysOf<StepCall<never>> = {
  retries: true,
  timeoutMs: true,
  backoffMs: true,
  compensate: true,
}

/** What a body sees. It turns calls into operations of its turn, and checks arguments before a position is taken. */
export class RunContext implements WorkflowCtx {
  readonly runId: string
  readonly workflow: string
  readonly version: string
  readonly namespace: string
  readonly abortSignal: AbortSignal
  readonly log: RunLogger
  #params: ContextParams
  /** The clock of the store may go back between two processes. */
  #lastNow = -Infinity

  constructor(params: ContextParams) {
    this.#params = params
    this.runId = params.run.id
    this.workflow = params.run.workflow
    this.version = params.run.version
    this.namespace = params.run.namespace
    this.abortSignal = params.abortSignal
    this.log = silentWhile(params.log, () => params.turn.isReplaying)
  }

  step(step: unknown, input?: unknown, call: StepCall<never> = {}): Promise<any> {
    return this.#call('step()', () => {
      const name = this.#params.stepName(step)
      checkOptions('ctx.step()', call, CALL_OPTIONS)
      checkStepTerms(name, call)
      const work = { input: this.#encode(input, 'input', `step "${name}"`) }
      const compensation = this.#undo(call)
      const here = stepOperation({ kind: 'step', name, work, call, compensation })
      const { dispatching } = this.#params
      return dispatching
        ? new DispatchedStep({ step: here, input: work.input, call, dispatching })
        : here
    })
  }

  localStep<T>(
    name: string,
    fn: (step: StepContext) => T | Promise<T>,
    call: StepCall<T> = {}
  ): Promise<T> {
    return this.#call('localStep()', () => {
      checkName('step name', name)
      checkOptions('ctx.localStep()', call, CALL_OPTIONS)
      checkStepTerms(name, call)
      const work = { local: fn }
      return stepOperation({
        ...{ kind: 'local_step', name, work, call },
        compensation: this.#undo(call),
      })
    })
  }

  upsertSearchAttributes(values: SearchAttributes): Promise<void> {
    return this.#call('upsertSearchAttributes()', () => {
      // As they are now: the body may change the object before they are checked.
      const given = this.#encode(values, 'search attributes')
      return attributesOperation(() => this.#params.checkAttributes(decode(given)))
    })
  }

  sleep(duration: string | number): Promise<void> {
    return this.#call('sleep()', () => sleepOperation({ dueIn: parseDuration(duration) }))
  }

  sleepUntil(instant: Instant): Promise<void> {
    return this.#call('sleepUntil()', () => sleepOperation({ dueAt: parseInstant(instant) }))
  }

  waitForSignal<T = unknown>(
    token: string,
    options: { timeout?: string | number | undefined } = {}
  ): Promise<T> {
    return this.#call('waitForSignal()', () => {
      checkOptions('ctx.waitForSignal()', options, { timeout: true })
      const timeoutMs = options.timeout === undefined ? null : parseDuration(options.timeout)
      return signalOperation({ token: checkName('signal token', token), timeoutMs })
    })
  }

  sendSignal(token: string, payload?: unknown): Promise<void> {
    return this.#call('sendSignal()', () =>
      sendSignalOperation({
        runId: this.runId,
        token: checkName('signal token', token),
        payload: this.#encode(payload, 'payload', `signal "${token}"`),
      })
    )
  }

  child(target: WorkflowTarget, input?: unknown, id?: string): Promise<any> {
    return this.#call('child()', () => {
      const { workflow, child } = this.#children(target, [input], { id, awaited: true })
      return childOperation({ workflow, child })
    })
  }

  startChild(target: WorkflowTarget, input?: unknown, id?: string): Promise<ChildHandle> {
    return this.#call('startChild()', () => {
      const { workflow, child } = this.#children(target, [input], { id, awaited: false })
      return startChildOperation({ workflow, child, hasOwnId: id !== undefined })
    })
  }

  all(
    target: WorkflowTarget,
    inputs: readonly unknown[],
    options: AllOptions = {}
  ): Promise<any[]> {
    return this.#call('all()', () => {
      checkOptions('ctx.all()', options, { mode: true, concurrency: true })
      checkAllOptions('ctx.all()', options)
      return this.#all(target, inputs, { ...options, mode: options.mode ?? 'failFast' })
    })
  }

  allSettled(
    target: WorkflowTarget,
    inputs: readonly unknown[],
    options: Pick<AllOptions, 'concurrency'> = {}
  ): Promise<PromiseSettledResult<any>[]> {
    const mode = 'settled' as const
    return this.#call('allSettled()', () => {
      checkOptions('ctx.allSettled()', options, { concurrency: true })
      checkAllOptions('ctx.allSettled()', options)
      return this.#all(target, inputs, { ...options, mode })
    })
  }

  now(): Date {
    this.#refuseInStep('now()')
    const at = this.#params.turn.determine('now', () =>
      encode(Math.max(this.#params.now(), this.#lastNow))
    )
    this.#lastNow = decode(at) as number
    return new Date(this.#lastNow)
  }

  random(): number {
    this.#refuseInStep('random()')
    const { seq, draw } = this.#params.turn.draw()
    return seededRandom(this.runId, seq, draw)
  }

  uuid(): string {
    this.#refuseInStep('uuid()')
    const { seq, draw } = this.#params.turn.draw()
    return seededUuid(this.runId, seq, draw)
  }

  /** Not an async function: the promise must be the operation's own, so that a forgotten await is found. */
  #call<T>(what: string, prepare: () => Operation): Promise<T> {
    try {
      this.#refuseInStep(what)
      return this.#params.turn.call(prepare()) as Promise<T>
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** A step's own function is called by its name, like any other step; any other function with the output. */
  #undo({ compensate }: StepCall<never>): Compensation | null {
    if (compensate === undefined) return null
    const step = this.#params.stepStamp(compensate)
    return step === null
      ? { undo: compensate as (output: unknown, step: StepContext) => unknown }
      : { step }
  }

  #refuseInStep(what: string) {
    const step = this.#params.callingStep()
    if (step !== null) throw new E_NESTED_OPERATION([`ctx.${what}`, step])
  }

  #all(
    target: WorkflowTarget,
    inputs: readonly unknown[],
    options: { mode: 'failFast' | 'waitAll' | 'settled'; concurrency?: number | undefined }
  ): Operation {
    const { mode, concurrency = Infinity } = options
    const failFast = mode === 'failFast'
    const { workflow, child } = this.#children(target, inputs, {
      awaited: true,
      failFast,
      many: true,
    })
    return allOperation({ workflow, count: inputs.length, child, mode, concurrency })
  }

  #children(
    target: WorkflowTarget,
    inputs: readonly unknown[],
    options: { id?: string | undefined; awaited: boolean; failFast?: boolean; many?: boolean }
  ): { workflow: string; child: ChildFactory } {
    const { awaited, failFast = true, many = false } = options
    const { name, version, origin, tags, timeoutMs } = this.#params.workflow(target)
    const ownId = options.id === undefined ? null : checkName('run id', options.id)
    const encoded = inputs.map((input, index) =>
      this.#encode(input, many ? `inputs[${index}]` : 'input')
    )
    const { runId, namespace } = this
    const child: ChildFactory = ({ seq, index }): NewChild => {
      const place = { seq, index, workflow: name, input: encoded[index]! }
      const suffix = many ? `.child.${seq}.${index}` : `.child.${seq}`
      return {
        acknowledge: !awaited && ownId !== null,
        run: {
          id: ownId ?? this.#params.turn.earlierChildren.idOf(runId, { ...place, suffix }),
          workflow: name,
          ...{ version, namespace, origin, tags },
          claimKey: claimKey(namespace, name, version),
          priority: DEFAULT_PRIORITY,
          input: encoded[index]!,
          parent: { runId, seq, index, awaited, failFast },
          createdBy: `${runId}:${seq}`,
          timeoutMs,
        },
      }
    }
    return { workflow: name, child }
  }

  #encode(value: unknown, label: string, of?: string): string {
    return encode(value, { label, of, maxBytes: this.#params.maxPayloadBytes })
  }
}

/** A logger that says nothing while `isSilent` holds. */
function silentWhile(log: RunLogger, isSilent: () => boolean): RunLogger {
  const guarded =
    (level: keyof RunLogger) =>
    (...args: [unknown, ...unknown[]]) => {
      if (!isSilent()) log[level](...args)
    }
  return {
    debug: guarded('debug'),
    info: guarded('info'),
    warn: guarded('warn'),
    error: guarded('error'),
  }
}
