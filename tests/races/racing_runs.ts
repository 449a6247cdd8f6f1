import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { StepContext } from '../../src/types/step.ts'

/** Registers the workflows that the processes race for; their steps call `effect` first. */
export function registerRacing(engine: WorkflowEngine, effect: (step: StepContext) => void): void {
  const one = engine.register('one', '1', (ctx) => ctx.localStep('only', effect))
  engine.register('three', '1', async (ctx) => {
    for (const name of ['first', 'second', 'third']) await ctx.localStep(name, effect)
  })
  engine.register('parent', '1', async (ctx) => {
    await ctx.all(one, [null, null])
    await ctx.child(one, null)
    await ctx.localStep('end', effect)
  })
  engine.register('wait', '1', async (ctx) => {
    await ctx.waitForSignal(`for-${ctx.runId}`)
    await ctx.localStep('signalled', effect)
  })
  engine.register('send', '1', async (ctx, waiter: string) => {
    await ctx.localStep('prepare', effect)
    await ctx.sendSignal(`for-${waiter}`)
  })
}

/** What a start of each kind amounts to. */
const KINDS = {
  one: { runs: 1, records: 1, steps: 1 },
  three: { runs: 1, records: 3, steps: 3 },
  parent: { runs: 4, records: 6, steps: 4 },
  pair: { runs: 2, records: 4, steps: 2 },
} as const
type Kind = keyof typeof KINDS

/** Of each hundred starts: three parents, two pairs of a waiter and a sender, and as many short runs as long ones. */
function kindOf(index: number): Kind {
  const place = index % 100
  if (place < 3) return 'parent'
  if (place < 5) return 'pair'
  return index % 2 ? 'one' : 'three'
}

/** Starts runs, in an order that mixes the kinds. Resolves to what they amount to once all are stored. */
export async function startRacing(engine: WorkflowEngine, starts: number) {
  const sum = { runs: 0, records: 0, steps: 0 }
  const stored: Promise<unknown>[] = []
  const start = (name: string, input: unknown, id: string) =>
    stored.push(engine.start({ name, version: '1' }, input, id))
  for (let index = 0; index < starts; index++) {
    const kind = kindOf(index)
    for (const key of ['runs', 'records', 'steps'] as const) sum[key] += KINDS[kind][key]
    if (kind !== 'pair') start(kind, null, `r${index}`)
    else {
      start('send', `r${index}`, `s${index}`)
      start('wait', null, `r${index}`)
    }
  }
  await Promise.all(stored)
  return sum
}
