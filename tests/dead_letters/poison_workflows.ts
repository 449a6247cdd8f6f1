import { setTimeout as delay } from 'node:timers/promises'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { DeadLetter } from '../../src/types/workflow.ts'

export const HEALTHY = { name: 'healthy', version: '1' }
export const POISON = { name: 'poison', version: '1' }
export const HANGING = { name: 'hanging', version: '1' }

export interface HealthyInput {
  /** How long each of its two steps takes, in ms. */
  workMs: number
  /** How long it sleeps between them, in ms; 0: not at all. */
  sleepMs: number
}

/** Only a process that was forked for it dies: the one that runs the tests would take them all with it. */
function killThisProcess(): void {
  if (!process.send) throw new Error('The poison was executed by the process that runs the tests')
  process.kill(process.pid, 'SIGKILL')
}

/** Runs that do their work, one that kills its process and one that blocks its event loop for ever. */
export function registerPoison(engine: WorkflowEngine): void {
  engine.register('healthy', '1', async (ctx, { workMs, sleepMs }: HealthyInput) => {
    await ctx.localStep('first', () => delay(workMs))
    if (sleepMs > 0) await ctx.sleep(sleepMs)
    await ctx.localStep('second', () => delay(workMs))
    return 'fine'
  })
  engine.register(
    'poison',
    '1',
    async (ctx) => {
      await ctx.localStep('prepare', () => 'prepared')
      await ctx.localStep('kill', killThisProcess)
    },
    { deadLetterWorkflow: 'poison.dlq' }
  )
  engine.register(
    'hanging',
    '1',
    (ctx) =>
      ctx.localStep('hang', () => {
        for (;;);
      }),
    { deadLetterWorkflow: 'poison.dlq' }
  )
  engine.register('poison.dlq', '1', (ctx, letter: DeadLetter) =>
    ctx.localStep('note', () => letter.error?.message)
  )
}
