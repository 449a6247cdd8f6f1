import { RunContext, type ContextParams } from '../replay/context.ts'
import type { ExecutionParams } from './execution.ts'
import { currentScope } from './scope.ts'
import type { StoreClock } from './store_clock.ts'

/** The context of a run's body in this process. */
export function contextOf(
  { options, log, naming }: ExecutionParams,
  parts: Pick<ContextParams, 'turn' | 'run' | 'abortSignal'> & { clock: StoreClock }
): RunContext {
  const { clock, ...rest } = parts
  return new RunContext({
    ...naming,
    ...rest,
    maxPayloadBytes: options.maxPayloadBytes,
    log,
    now: () => clock.steady(),
    callingStep: () => {
      const scope = currentScope()
      return scope?.kind === 'step' ? scope.name : null
    },
  })
}
