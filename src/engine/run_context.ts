import { storedAttributes } from '../core/search_attributes.ts'
import { RunContext, type ContextParams } from '../replay/context.ts'
import type { ExecutionParams } from './execution.ts'
import { parse } from './schema.ts'
import { currentScope } from './scope.ts'
import type { StoreClock } from './store_clock.ts'

/** The context of a run's body in this process. */
export function contextOf(
  { options, log, naming, registry }: ExecutionParams,
  parts: Pick<ContextParams, 'turn' | 'run' | 'abortSignal'> & { clock: StoreClock }
): RunContext {
  const { clock, ...rest } = parts
  return new RunContext({
    ...naming,
    ...rest,
    maxPayloadBytes: options.maxPayloadBytes,
    log,
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
