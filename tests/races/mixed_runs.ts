import { setTimeout as delay } from 'node:timers/promises'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import { FatalError } from '../../src/errors.ts'
import type { StepContext } from '../../src/types/step.ts'

type Effect = (step: StepContext) => void

/** How a run ends: its output, or the code of its failure. */
export type Outcome = { output: unknown } | { failed: string }

/** What was started comes to: every run by id, the records of all of them, and the steps they execute. */
export interface Expected {
  outcomes: Map<string, Outcome>
  records: number
  steps: number
}

const LINES = 15
const WINDOW = 5
const SLEEPS_EACH = 3

/** Long enough for a few hundred runs to be in flight when something happens, and differently long. */
function work(number: number): Promise<void> {
  return delay(20 + (number % 7) * 10)
}

/** Parents with a window of children, of which some sleep; signals between runs; sagas that undo what they did. */
export function registerMixed(engine: WorkflowEngine, effect: Effect): void {
  const act = (number: number) => async (step: StepContext) => {
    effect(step)
    await work(number)
    return number
  }
  const line = engine.register('line', '1', async (ctx, number: number) => {
    await ctx.localStep('first', act(number))
    if (number % SLEEPS_EACH === 0) await ctx.sleep(50 + number)
    return ctx.localStep('second', act(number))
  })
  engine.register('parent', '1', async (ctx) => {
    const numbers = Array.from({ length: LINES }, (_, index) => index)
    const outputs = await ctx.all(line, numbers, { concurrency: WINDOW })
    await ctx.localStep('end', act(LINES))
    return outputs.reduce((sum, output) => sum + output, 0)
  })
  engine.register('wait', '1', async (ctx) => {
    const word = await ctx.waitForSignal(`for-${ctx.runId}`)
    await ctx.localStep('signalled', act(1))
    return word
  })
  engine.register('send', '1', async (ctx, waiter: string) => {
    await ctx.localStep('prepare', act(2))
    await ctx.sendSignal(`for-${waiter}`, 'hello')
  })
  engine.register('saga', '1', async (ctx) => {
    for (const name of ['a', 'b'])
      await ctx.localStep(name, act(3), { compensate: (_output, step) => act(4)(step) })
    await ctx.localStep('fail', (step) => {
      effect(step)
      throw new FatalError('no seats', 'sold_out')
    })
  })
}

const SLEEPERS = Math.ceil(LINES / SLEEPS_EACH)
const SUM = (LINES * (LINES - 1)) / 2

/** Starts `count` of each kind. Resolves once all are stored. */
export async function startMixed(engine: WorkflowEngine, count: number): Promise<Expected> {
  const outcomes = new Map<string, Outcome>()
  const stored: Promise<unknown>[] = []
  const start = (name: string, run: { id: string; input?: unknown; outcome: Outcome }) => {
    outcomes.set(run.id, run.outcome)
    stored.push(engine.start({ name, version: '1' }, run.input ?? null, run.id))
  }
  for (let number = 0; number < count; number++) {
    start('parent', { id: `p${number}`, outcome: { output: SUM } })
    for (let index = 0; index < LINES; index++)
      outcomes.set(`p${number}.child.0.${index}`, { output: index })
    start('send', { id: `s${number}`, input: `w${number}`, outcome: { output: undefined } })
    start('wait', { id: `w${number}`, outcome: { output: 'hello' } })
    start('saga', { id: `g${number}`, outcome: { failed: 'sold_out' } })
  }
  await Promise.all(stored)
  const records = { lines: 2 * LINES + SLEEPERS, parent: 2, send: 2, wait: 2, saga: 5 }
  const steps = { lines: 2 * LINES, parent: 1, send: 1, wait: 1, saga: 5 }
  return { outcomes, records: count * total(records), steps: count * total(steps) }
}

function total(numbers: Record<string, number>): number {
  return Object.values(numbers).reduce((all, number) => all + number, 0)
}
