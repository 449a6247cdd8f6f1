import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { StepCall } from '../../src/types/step.ts'

/** A body of one step, which says what it came to. */
export function registerRemote(engine: WorkflowEngine, call: StepCall<unknown> = {}) {
  return engine.register('remote', '1', async (ctx, input: unknown) => {
    try {
      return { value: await ctx.step('work', input, call) }
    } catch (error) {
      const { name, message, code, attempts, retryable } = error as Record<string, unknown>
      return { name, message, code, attempts, retryable }
    }
  })
}
