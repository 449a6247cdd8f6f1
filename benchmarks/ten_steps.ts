import type { WorkflowEngine } from '../src/engine/engine.ts'

export const STEPS = 10
const MIDDLE = STEPS / 2

/** A workflow of ten local steps. `middle` is called within the middle one, which ends when that resolves. */
export function registerTenSteps(engine: WorkflowEngine, middle: () => Promise<void>) {
  return engine.register('ten-steps', '1', async (ctx) => {
    for (let seq = 0; seq < STEPS; seq++) {
      await ctx.localStep('step', async () => {
        if (seq === MIDDLE) await middle()
        return { seq }
      })
    }
  })
}
