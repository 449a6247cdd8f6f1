import { setTimeout as delay } from 'node:timers/promises'
import type { StepContext } from '../../src/types/step.ts'
import { FAILING_SCENARIOS } from './failing_scenarios.ts'
import { LONG_BACKOFF_MS, LONG_MS, reached, type Scenario } from './scenario.ts'

const tenSteps: Scenario = {
  register(engine, effect) {
    engine.register('ten', '1', async (ctx) => {
      let sum = 0
      for (let index = 1; index <= 10; index++)
        sum += await ctx.localStep(`step-${index}`, (step) => {
          effect(step)
          return index
        })
      return sum
    })
  },
  async drive(engine) {
    await engine.start({ name: 'ten', version: '1' }, null, 'ten')
    await engine.waitForRun('ten')
  },
  outcomes: { ten: { output: 55 } },
}

const family: Scenario = {
  register(engine, effect) {
    const double = engine.register('double', '1', (ctx, input: number) =>
      ctx.localStep('double', (step) => {
        effect(step)
        return 2 * input
      })
    )
    const failing = engine.register('failing', '1', (ctx) =>
      ctx.localStep(
        'fail',
        (step) => {
          effect(step)
          throw Object.assign(new Error('It is broken'), { code: 'broken' })
        },
        { retries: 0 }
      )
    )
    engine.register('parent', '1', async (ctx) => {
      const one = await ctx.child(double, 1)
      const many = await ctx.all(double, [2, 3, 4], { concurrency: 2 })
      const failure = await ctx.child(failing, null).catch((error: unknown) => codeOf(error))
      const last = await ctx.localStep('last', (step) => {
        effect(step)
        return 10
      })
      return [one, ...many, failure, last]
    })
  },
  async drive(engine) {
    await engine.start({ name: 'parent', version: '1' }, null, 'p')
    await engine.waitForRun('p')
  },
  outcomes: {
    'p': { output: [2, 4, 6, 8, 'broken', 10] },
    'p.child.0': { output: 2 },
    'p.child.1.0': { output: 4 },
    'p.child.1.1': { output: 6 },
    'p.child.1.2': { output: 8 },
    'p.child.2': { failed: 'broken' },
  },
}

/** A step against a sleep; only `quick` ever ends by itself. */
function race(winner: 'step' | 'sleep'): Scenario {
  return {
    register(engine, effect) {
      engine.register('race', '1', async (ctx) => {
        const step = ctx.localStep('racer', async (context) => {
          effect(context)
          if (winner === 'sleep') await aborted(context.signal)
          return 'step'
        })
        const sleep = ctx.sleep(winner === 'sleep' ? 20 : LONG_MS).then(() => 'sleep')
        const first = await Promise.race([step, sleep])
        return ctx.localStep('use', (context) => {
          effect(context)
          return `${first} won`
        })
      })
    },
    async drive(engine) {
      await engine.start({ name: 'race', version: '1' }, null, 'race')
      await engine.waitForRun('race')
    },
    outcomes: { race: { output: `${winner} won` } },
    // The loser is still at work while the winner's name is used.
    parallel: winner === 'sleep' ? 2 : 1,
  }
}

/** One signal is sent before anybody waits for it, the other one while its waiter is suspended. */
const signals: Scenario = {
  register(engine, effect) {
    engine.register('send', '1', async (ctx, token: string) => {
      await ctx.localStep('prepare', effect)
      await ctx.sendSignal(token, `${token} payload`)
      await ctx.localStep('confirm', effect)
    })
    engine.register('wait', '1', async (ctx) => {
      const kept = await ctx.waitForSignal('kept')
      await ctx.localStep('between', effect)
      const direct = await ctx.waitForSignal('direct', { timeout: LONG_MS })
      await ctx.localStep('after', effect)
      return [kept, direct]
    })
  },
  async drive(engine) {
    const send = { name: 'send', version: '1' }
    await engine.start(send, 'kept', 's1')
    await engine.waitForRun('s1')
    await engine.start({ name: 'wait', version: '1' }, null, 'w')
    await reached(engine, 'w', 'suspended')
    await engine.start(send, 'direct', 's2')
    await engine.waitForRun('w')
    await engine.waitForRun('s2')
  },
  outcomes: {
    w: { output: ['kept payload', 'direct payload'] },
    s1: { output: undefined },
    s2: { output: undefined },
  },
}

/** One step whose back-off is short enough to wait for, and one whose back-off suspends the run. */
const retries: Scenario = {
  register(engine, effect) {
    const failUntil = (attempt: number) => (step: StepContext) => {
      effect(step)
      if (step.attempt < attempt) throw new Error('Not yet')
      return step.attempt
    }
    engine.register('retry', '1', async (ctx) => {
      const soon = await ctx.localStep('soon', failUntil(3), { backoffMs: 1 })
      const later = await ctx.localStep('later', failUntil(3), { backoffMs: LONG_BACKOFF_MS })
      await ctx.localStep('end', effect)
      return [soon, later]
    })
  },
  async drive(engine) {
    await engine.start({ name: 'retry', version: '1' }, null, 'retry')
    for (;;) {
      if ((await reached(engine, 'retry', 'suspended')) !== 'suspended') return
      await engine.advanceClock(LONG_BACKOFF_MS)
      // Everything so far may have been done without a macrotask.
      await delay(1)
    }
  },
  outcomes: { retry: { output: [3, 3] } },
}

/** Children that nobody waits for, one under an id of the caller's choice, which waits for a signal. */
const started: Scenario = {
  register(engine, effect) {
    const own = engine.register('own', '1', async (ctx) => {
      const word = await ctx.waitForSignal('word')
      await ctx.localStep('use', effect)
      return word
    })
    const derived = engine.register('derived', '1', (ctx) => ctx.localStep('work', effect))
    engine.register('start', '1', async (ctx) => {
      const first = await ctx.startChild(derived, null)
      const second = await ctx.startChild(own, null, 'own')
      await ctx.sendSignal('word', 'hello')
      await ctx.localStep('last', effect)
      return [first.runId, second.runId]
    })
  },
  async drive(engine) {
    await engine.start({ name: 'start', version: '1' }, null, 's')
    for (const id of ['s', 's.child.0', 'own']) await engine.waitForRun(id)
  },
  outcomes: {
    's': { output: ['s.child.0', 'own'] },
    's.child.0': { output: undefined },
    'own': { output: 'hello' },
  },
}

export const SCENARIOS = {
  'a run of ten steps': tenSteps,
  'a parent with children': family,
  'a race that the step wins': race('step'),
  'a race that the sleep wins': race('sleep'),
  'signals, kept and direct': signals,
  'retries with short and long back-off': retries,
  'started children and a signal to one': started,
  ...FAILING_SCENARIOS,
} satisfies Record<string, Scenario>
export type ScenarioName = keyof typeof SCENARIOS

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : error
}
