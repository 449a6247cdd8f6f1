import { checkIsOptions } from './core/known_options.ts'
import { currentEngine } from './engine/current_engine.ts'
import { currentScope } from './engine/scope.ts'
import { WORKFLOW } from './engine/workflow_class.ts'
import { E_START_OPTION_IN_BODY, E_WAIT_IN_TRANSACTION } from './errors.ts'
import type { ChildHandle, WorkflowCtx } from './types/context.ts'
import type {
  DeadLetter,
  InputOf,
  OutputOf,
  RunHandle,
  StartArgs,
  StartOptions,
  WorkflowClass,
  WorkflowOptions,
  WorkflowRef,
} from './types/workflow.ts'

type ClassOf<W extends BaseWorkflow> = new (...args: any[]) => W

/** The context of the body that the caller is part of; undefined in a step and outside of runs. */
function currentBody(): WorkflowCtx | undefined {
  const scope = currentScope()
  return scope?.kind === 'body' ? scope.ctx : undefined
}

/** A child takes its run id from the options, and everything else from its parent. */
function childId(call: string, options: StartOptions): string | undefined {
  checkIsOptions(call, options, ['runId'])
  for (const [option, value] of Object.entries(options)) {
    if (option !== 'runId' && value !== undefined) throw new E_START_OPTION_IN_BODY([call, option])
  }
  return options.runId
}

async function startAndWait(
  target: WorkflowClass,
  input: unknown,
  options: StartOptions
): Promise<unknown> {
  if (options.client !== undefined) {
    throw new E_WAIT_IN_TRANSACTION([target.workflow?.name ?? target.name])
  }
  const engine = await currentEngine(`${target.name}.start()`)
  const handle = await engine.start(target, input, options)
  return handle.result()
}

/**
 * What workflows extend. `run` is the body: ordinary async code that awaits nothing but what `ctx` gives it. The
 * container makes one instance for each run held in memory; what the constructor is given is its only state.
 */
export abstract class BaseWorkflow {
  /** @internal */
  static readonly [WORKFLOW] = true

  /** Name and version of the workflow: each class declares its own. */
  static workflow?: WorkflowOptions

  /**
   * Starts a run and waits for its output. Rejects with E_RUN_FAILED when the run ends otherwise; with `client`
   * E_WAIT_IN_TRANSACTION, for the run exists only after the commit. Inside a body it is `ctx.child`.
   */
  static start<W extends BaseWorkflow>(
    this: ClassOf<W>,
    ...args: StartArgs<InputOf<W>>
  ): Promise<OutputOf<W>>
  static start(this: WorkflowClass, input?: unknown, options: StartOptions = {}): Promise<unknown> {
    const body = currentBody()
    // The operation itself, not a promise around it: only so does a forgotten await remain visible.
    if (body) return body.child(this, input, childId(`${this.name}.start()`, options))
    return startAndWait(this, input, options)
  }

  /**
   * Starts a run and resolves, when it is stored, to its handle. Inside a body it is `ctx.startChild`, and the handle
   * holds nothing but the run's id: its `result()` throws E_RESULT_IN_BODY.
   */
  static dispatch<W extends BaseWorkflow>(
    this: ClassOf<W>,
    ...args: StartArgs<InputOf<W>>
  ): Promise<RunHandle<OutputOf<W>>>
  static dispatch(
    this: WorkflowClass,
    input?: unknown,
    options: StartOptions = {}
  ): Promise<RunHandle | ChildHandle> {
    const body = currentBody()
    if (body) return body.startChild(this, input, childId(`${this.name}.dispatch()`, options))
    return currentEngine(`${this.name}.dispatch()`).then((engine) =>
      engine.start(this, input, options)
    )
  }

  abstract run(ctx: WorkflowCtx, input: any): any

  /** Takes care of runs of this class that end `dead`: a workflow of its own, named `<workflow>.dlq`. */
  deadLetter?(ctx: WorkflowCtx, dead: DeadLetter<any>): unknown
}

/** Names a workflow, with the types of its input and output, without importing it. */
export function workflowRef<I = unknown, O = unknown>(
  name: string,
  version?: string
): WorkflowRef<I, O> {
  return version === undefined ? { name } : { name, version }
}
