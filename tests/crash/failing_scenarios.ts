import { setTimeout as delay } from 'node:timers/promises'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import { FatalError } from '../../src/errors.ts'
import { defineStep } from '../../src/step.ts'
import { dying } from './dying_scenario.ts'
import { type Effect, LIFE, LONG_BACKOFF_MS, reached, type Scenario } from './scenario.ts'

function soldOut(): never {
  throw new FatalError('no seats', 'sold_out')
}

/** Moves the clock whenever the run waits, until it has ended. */
async function driveThroughWaits(engine: WorkflowEngine, runId: string): Promise<void> {
  while ((await reached(engine, runId, 'suspended')) === 'suspended') {
    await engine.advanceClock(LONG_BACKOFF_MS)
    await delay(1)
  }
}

/** Declared anew with the effects of each scenario that is driven: the same file may replace its steps. */
function undoLater(effect: Effect) {
  return defineStep(
    'crash.undo_later',
    (_output: unknown, step) => {
      effect(step)
      if (step.attempt < 2) throw new Error('not yet')
    },
    { retries: 2, backoffMs: LONG_BACKOFF_MS }
  )
}

/** Three steps are undone: one at once, one after a long back-off, one never. */
const saga: Scenario = {
  register(engine, effect) {
    const never = (_output: unknown, step: Parameters<Effect>[0]) => {
      effect(step)
      throw new FatalError('it cannot be undone')
    }
    engine.register('saga', '1', async (ctx) => {
      await ctx.localStep('a', effect, { compensate: (_output, step) => effect(step) })
      await ctx.localStep('b', effect, { compensate: undoLater(effect) })
      await ctx.localStep('c', effect, { compensate: never })
      await ctx.localStep('book', (step) => {
        effect(step)
        soldOut()
      })
    })
  },
  async drive(engine) {
    await engine.start({ name: 'saga', version: '1' }, null, 'saga')
    await driveThroughWaits(engine, 'saga')
  },
  outcomes: { saga: { failed: 'sold_out' } },
}

/** A child is undone and handed to a handler, whose outcome is that of the child. */
const routing: Scenario = {
  register(engine, effect) {
    engine.register('handle', '1', (ctx, { error }: { error: { code: string } }) =>
      ctx.localStep('handle', (step) => {
        effect(step)
        return `handled ${error.code}`
      })
    )
    const line = engine.register(
      'line',
      '1',
      async (ctx) => {
        await ctx.localStep('a', effect, { compensate: (_output, step) => effect(step) })
        await ctx.localStep('fail', (step) => {
          effect(step)
          soldOut()
        })
      },
      { onError: [{ code: 'sold_out', workflow: 'handle' }] }
    )
    engine.register('lines', '1', (ctx) => ctx.all(line, [null]))
  },
  async drive(engine) {
    await engine.start({ name: 'lines', version: '1' }, null, 'p')
    await engine.waitForRun('p')
  },
  outcomes: {
    'p': { output: ['handled sold_out'] },
    'p.child.0.0': { output: 'handled sold_out' },
    'p.child.0.0.onError.0': { output: 'handled sold_out' },
  },
}

/** A failed parent is requeued with its failed child, and what it had undone is done again. */
const requeue: Scenario = {
  register(engine, effect) {
    const isAgain = async (runId: string) => {
      const { records = [] } = (await engine.getHistory(runId)) ?? {}
      return records.some(({ generation }) => generation > 0)
    }
    /** Attempts of a later life are told from those of the first. */
    const act = async (step: Parameters<Effect>[0], runId: string) => {
      const again = await isAgain(runId)
      effect(again ? { ...step, attempt: step.attempt + LIFE } : step)
      return again
    }
    const inner = engine.register('inner', '1', async (ctx) => {
      await ctx.localStep('kept', effect)
      return ctx.localStep('break', async (step) => {
        if (!(await act(step, ctx.runId))) soldOut()
        return 'repaired'
      })
    })
    engine.register('outer', '1', async (ctx) => {
      await ctx.localStep('kept', effect)
      await ctx.localStep('a', (step) => act(step, ctx.runId), {
        compensate: (_output, step) => effect(step),
      })
      const output = await ctx.child(inner, null)
      await ctx.localStep('last', (step) => act(step, ctx.runId))
      return output
    })
  },
  async drive(engine) {
    await engine.start({ name: 'outer', version: '1' }, null, 'r')
    for (;;) {
      const run = await engine.waitForRun('r')
      if (run.status !== 'failed') return
      await engine.requeue('r')
    }
  },
  outcomes: { 'r': { output: 'repaired' }, 'r.child.2': { output: 'repaired' } },
  requeued: ['r', 'r.child.2'],
}

/** One run is cancelled with the child it awaits, another one undoes its steps first. */
const cancelling: Scenario = {
  register(engine, effect) {
    const waiting = engine.register('waiting', '1', async (ctx) => {
      await ctx.localStep('a', effect)
      await ctx.waitForSignal('never')
    })
    engine.register('parent', '1', async (ctx) => {
      await ctx.localStep('a', effect, { compensate: (_output, step) => effect(step) })
      await ctx.child(waiting, null)
    })
    engine.register('undoing', '1', async (ctx) => {
      await ctx.localStep('a', effect, { compensate: (_output, step) => effect(step) })
      await ctx.localStep('b', effect, { compensate: undoLater(effect) })
      await ctx.waitForSignal('never')
    })
  },
  async drive(engine) {
    await engine.start({ name: 'parent', version: '1' }, null, 'p')
    await engine.start({ name: 'undoing', version: '1' }, null, 'u')
    for (const id of ['p', 'p.child.1', 'u']) await reached(engine, id, 'suspended')
    await engine.cancel('p')
    await engine.cancel('u', { compensate: true })
    await driveThroughWaits(engine, 'u')
  },
  outcomes: {
    'p': { failed: 'cancelled' },
    'p.child.1': { failed: 'cancelled' },
    'u': { failed: 'cancelled' },
  },
}

export const FAILING_SCENARIOS = {
  'a saga that undoes its steps': saga,
  'a failure that a handler takes care of': routing,
  'a requeue with a child': requeue,
  'cancels, one with compensations': cancelling,
  'a dead run that its parent awaits': dying,
} satisfies Record<string, Scenario>
