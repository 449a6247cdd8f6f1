import { storedAttributes } from '../core/search_attributes.ts'
import { RunContext, type ContextParams } from '../replay/context.ts'
import type { ExecutionParams } from './execution.ts'
import { BoundLogger } from './run_logger.ts'
import { parse } from './schema.ts'
import { currentScope } from './scope.ts'
import type { StoreClock } from './store_clock.ts'

/** The context of a run's body in this process. */
export function contextOf(
  { options, log, naming, registry, dispatcher }: ExecutionParams,
  parts: Pick<ContextParams, 'turn' | 'run' | 'abortSignal'> & {
    clock: StoreClock
    /** Of the lease under which the body is executed at the moment. */
    token: () => number
  }
): RunContext {
  const { clock, token, ...rest } = parts
  return new RunContext({
    ...naming,
    ...rest,
    maxPayloadBytes: options.maxPayloadBytes,
    log: new BoundLogger(log, { runId: parts.run.id, workflow: parts.run.workflow }),
    dispatching: dispatcher?.dispatching(token) ?? null,
    now: () => clock.steady(),
    checkAttributes: async (values) => {
      const { workflow, version } = parts.run
      const schema = registry.workflow(workflow, version)?.searchAttributes
      return storedAttributes(await parse(schema, values, 'schema_validation'))
    },
    callingStep: () => {
      const scope = currentScope()
      return scope?.kind === 'step' ? scope.name : null
    },
  })
}
