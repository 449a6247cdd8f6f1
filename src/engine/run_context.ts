import { storedAttributes } from '../core/search_attributes.ts'
import { RunContext } from '../replay/context.ts'
import type { Turn } from '../replay/turn.ts'
import type { WorkflowCtx } from '../types/context.ts'
import type { ExecutionParams } from './execution.ts'
import { BoundLogger } from './run_logger.ts'
import type { RunWriter } from './run_writer.ts'
import { parse } from './schema.ts'
import { currentScope, runInScope } from './scope.ts'

interface BodyParams {
  turn: Turn
  writer: RunWriter
  /** Aborts when the run is not this process's to execute any more. */
  voided: AbortSignal
  /** Called with an error that nobody in the body handled. */
  fail: (reason: unknown) => void
}

/** Has a turn run a body of its run, with its context and in its scope. */
export function startBody(
  body: (ctx: WorkflowCtx) => unknown,
  process: ExecutionParams,
  params: BodyParams
): void {
  const { turn, writer, fail } = params
  writer.bodyBegins()
  const ctx = contextOf(process, params)
  const queried = (query: string) => turn.queried(query)
  turn.start(() => runInScope({ kind: 'body', ctx, fail, queried }, () => body(ctx)))
}

function contextOf(
  { options, log, naming, registry, dispatcher }: ExecutionParams,
  { turn, writer, voided }: BodyParams
): RunContext {
  const { clock, row: run } = writer
  return new RunContext({
    ...naming,
    turn,
    run,
    abortSignal: voided,
    maxPayloadBytes: options.maxPayloadBytes,
    log: new BoundLogger(log, { runId: run.id, workflow: run.workflow }),
    // Of the lease under which the body is executed at the moment.
    dispatching: dispatcher?.dispatching(() => writer.row.token) ?? null,
    now: () => clock.steady(),
    checkAttributes: async (values) => {
      const schema = registry.workflow(run.workflow, run.version)?.searchAttributes
      return storedAttributes(await parse(schema, values, 'schema_validation'))
    },
    callingStep: () => {
      const scope = currentScope()
      return scope?.kind === 'step' ? scope.name : null
    },
  })
}
