import type { StepContext } from '../../src/types/step.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { Flavour, Plan, StepPlan } from './body_plan.ts'
import { mix } from './random.ts'

/** What one execution of a body saw, in order. */
export interface Trace {
  readonly entries: string[]
  /** Names of the steps whose outcomes it has seen. */
  readonly steps: string[]
  ended: boolean
}

/** What a step's function is told by the body that called it. */
export interface StepInput {
  name: string
  plan: StepPlan
  /** A step whose outcome the body had seen before; its record must be durable. */
  after: string | null
}

export interface BodyEnvironment {
  flavour: Flavour
  /** A new execution of the body of this run begins. */
  begin(runId: string): Trace
  /** Runs a step's function. */
  runStep(input: StepInput, step: StepContext): unknown
}

/** A backoff above a second suspends the run. */
const LONG_BACKOFF_MS = 600_000

/** The body of `plan`: asks `ctx` for what it says, and mixes everything it sees, in order, into a hash. */
export async function runBody(
  environment: BodyEnvironment,
  ctx: WorkflowCtx,
  plan: Plan
): Promise<unknown> {
  const trace = environment.begin(ctx.runId)
  const body = new Body(environment, ctx, trace)
  try {
    const value = await body.run(plan)
    return environment.flavour === 'settled' ? value : [value, body.hash]
  } finally {
    trace.ended = true
  }
}

class Body {
  hash = 2_166_136_261
  #environment: BodyEnvironment
  #ctx: WorkflowCtx
  #trace: Trace

  constructor(environment: BodyEnvironment, ctx: WorkflowCtx, trace: Trace) {
    this.#environment = environment
    this.#ctx = ctx
    this.#trace = trace
  }

  get #isSettled(): boolean {
    return this.#environment.flavour === 'settled'
  }

  /** What a part comes to. Of a settled body it says nothing that time or order could change. */
  async run(plan: Plan): Promise<unknown> {
    switch (plan.kind) {
      case 'step':
        return this.#step(plan)
      case 'sleep':
        await this.#ctx.sleep(plan.minutes * 60_000)
        return this.#saw(plan, 'slept')
      case 'signal':
        await this.#caught(plan, () => this.#signal(plan))
        return this.#isSettled ? 'signalled or not' : this.hash
      case 'send':
        await this.#ctx.sendSignal(plan.token, `${this.#ctx.runId}/${plan.id}`)
        return this.#saw(plan, 'sent')
      case 'child':
        return this.#caught(plan, async () => {
          const output = await this.#ctx.child('child', plan.body, this.#ownId(plan.ownId))
          return this.#saw(plan, output)
        })
      case 'start_child':
        return this.#caught({ id: plan.id, caught: true }, async () => {
          const handle = await this.#ctx.startChild('child', plan.body, this.#ownId(plan.ownId))
          return this.#saw(plan, this.#isSettled ? 'started' : handle.runId)
        })
      case 'all':
        return this.#caught({ id: plan.id, caught: true }, () => this.#all(plan))
      case 'now':
        this.#note(
          plan,
          this.#environment.flavour === 'ordered' ? 'now' : this.#ctx.now().getTime()
        )
        return 'now'
      case 'random':
        this.#note(plan, this.#ctx.random())
        return 'random'
      case 'uuid':
        this.#note(plan, this.#ctx.uuid())
        return 'uuid'
      case 'ticks':
        for (let count = 0; count < plan.length; count++) await null
        return this.#saw(plan, 'ticked')
      case 'sequence': {
        const values: unknown[] = []
        for (const part of plan.parts) values.push(await this.run(part))
        return this.#saw(plan, values)
      }
      case 'parallel':
        return this.#saw(plan, await this.#parallel(plan))
      case 'attempt':
        return this.#attempt(plan)
      case 'throw':
        throw new Error(`thrown by ${plan.id}`)
    }
  }

  async #step(plan: Plan & { kind: 'step' }): Promise<unknown> {
    const { step } = plan
    const name = this.#isSettled ? `s${plan.id}` : `s${plan.id}@${this.hash}`
    const input: StepInput = { name, plan: step, after: this.#trace.steps.at(-1) ?? null }
    const backoffMs = step.backoff === 'short' ? 1 : LONG_BACKOFF_MS
    const call = { retries: step.retries, backoffMs }
    const run = () => {
      if (step.remote) return this.#ctx.step(name, input, call)
      return step.dispatched
        ? this.#ctx.step('work', input, call)
        : this.#ctx.localStep(name, (context) => this.#environment.runStep(input, context), call)
    }
    try {
      const value = await run()
      this.#trace.steps.push(name)
      return this.#saw(plan, value)
    } catch (error) {
      this.#trace.steps.push(name)
      if (!plan.caught) throw error
      return this.#saw(plan, `failed: ${messageOf(error)}`)
    }
  }

  async #signal(plan: Plan & { kind: 'signal' }): Promise<unknown> {
    const { token, timeoutMinutes } = plan
    const options = timeoutMinutes === null ? {} : { timeout: timeoutMinutes * 60_000 }
    return this.#saw(plan, await this.#ctx.waitForSignal(token, options))
  }

  async #all(plan: Plan & { kind: 'all' }): Promise<unknown> {
    const { bodies, mode } = plan
    const limit = plan.concurrency === null ? {} : { concurrency: plan.concurrency }
    if (mode !== 'settled')
      return this.#saw(plan, await this.#ctx.all('child', bodies, { ...limit, mode }))
    const results = await this.#ctx.allSettled('child', bodies, limit)
    const values = results.map((result) =>
      result.status === 'fulfilled' ? result.value : `failed: ${messageOf(result.reason)}`
    )
    return this.#saw(plan, values)
  }

  async #parallel(plan: Plan & { kind: 'parallel' }): Promise<unknown> {
    const parts = plan.parts.map((part) => this.run(part))
    switch (plan.how) {
      case 'all':
        return this.#anonymous(plan, () => Promise.all(parts))
      case 'any':
        return this.#anonymous(plan, async () => {
          const first = await Promise.any(parts)
          return this.#isSettled ? 'one' : first
        })
      case 'race':
        return Promise.race(parts)
      case 'allSettled': {
        const results = await Promise.allSettled(parts)
        return results.map((result) =>
          result.status === 'fulfilled' ? result.value : `failed: ${messageOf(result.reason)}`
        )
      }
    }
  }

  /** Which of several parts failed first depends on time: a settled body does not say. */
  async #anonymous<T>(plan: Plan, run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      if (!this.#isSettled) throw error
      throw new Error(`part of ${plan.id} failed`)
    }
  }

  async #attempt(plan: Plan & { kind: 'attempt' }): Promise<unknown> {
    try {
      return await this.run(plan.body)
    } catch (error) {
      if (!plan.caught) throw error
      this.#note(plan, messageOf(error))
      return await this.run(plan.caught)
    } finally {
      if (plan.last) await this.run(plan.last)
    }
  }

  async #caught(
    plan: { id: number; caught: boolean },
    run: () => Promise<unknown>
  ): Promise<unknown> {
    try {
      return await run()
    } catch (error) {
      if (!plan.caught) throw error
      this.#note(plan, messageOf(error))
      return this.#isSettled ? 'not given' : messageOf(error)
    }
  }

  #ownId(id: string | null): string | undefined {
    return id === null ? undefined : `${this.#ctx.runId}.${id}`
  }

  #saw(plan: { id: number }, value: unknown): unknown {
    this.#note(plan, value)
    return value
  }

  #note(plan: { id: number }, value: unknown): void {
    const entry = `${plan.id}: ${JSON.stringify(value)}`
    this.#trace.entries.push(entry)
    this.hash = mix(this.hash, entry)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
