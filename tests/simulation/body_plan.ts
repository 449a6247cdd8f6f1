import { Random } from './random.ts'

/** How the function of a step behaves. */
export interface StepPlan {
  /**
   * When an attempt comes to its end: at once, after a chain of microtasks, after some macrotasks, or when the
   * simulation lets it (`gate`).
   */
  pace: 'immediate' | 'ticks' | 'macrotasks' | 'gate'
  /** Length of the chain. */
  length: number
  /** Attempts that fail before one succeeds. */
  failures: number
  retries: number
  /** `short` retries within the turn, `long` suspends the run. */
  backoff: 'short' | 'long'
  /** The failure is one that is never retried. */
  fatal: boolean
  /** The function throws before it returns a promise. */
  throwsAtOnce: boolean
  /** Run by the name of a registered handler. */
  dispatched: boolean
  /** Sent to workers: nobody here has its handler. Its pace is theirs. */
  remote: boolean
}

/** One part of a random body. A plan is plain data: children get theirs as their input. */
export type Plan = { id: number } & (
  | { kind: 'step'; step: StepPlan; caught: boolean }
  | { kind: 'sleep'; minutes: number }
  | { kind: 'signal'; token: string; timeoutMinutes: number | null; caught: boolean }
  | { kind: 'send'; token: string }
  | { kind: 'child'; body: Plan; ownId: string | null; caught: boolean }
  | { kind: 'start_child'; body: Plan; ownId: string | null }
  | {
      kind: 'all'
      bodies: Plan[]
      concurrency: number | null
      mode: 'failFast' | 'waitAll' | 'settled'
    }
  | { kind: 'now' | 'random' | 'uuid' }
  | { kind: 'ticks'; length: number }
  | { kind: 'sequence'; parts: Plan[] }
  | { kind: 'parallel'; how: 'all' | 'allSettled' | 'any' | 'race'; parts: Plan[] }
  | { kind: 'attempt'; body: Plan; caught: Plan | null; last: Plan | null }
  | { kind: 'throw' }
)

/**
 * What is known of the outcome of a body. `settled`: no races, its outcome is made of what its parts came to,
 * whatever the order. `ordered`: races of steps and sleeps, which the simulation lets end in one fixed order.
 * `any`: whatever happens, the history decides.
 */
export type Flavour = 'settled' | 'ordered' | 'any'

export interface PlannedBody {
  flavour: Flavour
  plan: Plan
  /** Tokens of signals that come from outside. */
  outsideSignals: string[]
}

const TOKENS = ['red', 'green'] as const

/** A random body. */
export function planBody(seed: number): PlannedBody {
  const random = new Random(seed)
  const flavour = random.weighted<Flavour>([
    [3, 'settled'],
    [3, 'ordered'],
    [5, 'any'],
  ])
  const planner = new Planner(random, flavour)
  const parts = [planner.part(random.chance(0.5) ? 2 : 3)]
  if (random.chance(0.5)) parts.unshift(planner.part(0))
  if (random.chance(0.5)) parts.push(planner.part(random.below(2)))
  const plan: Plan = { id: planner.nextId(), kind: 'sequence', parts }
  const outsideSignals = Array.from({ length: random.below(3) }, () => random.pick(TOKENS))
  return { flavour, plan, outsideSignals }
}

class Planner {
  #random: Random
  #flavour: Flavour
  #next = 1
  #operationsLeft = 14
  #childrenLeft = 4

  constructor(random: Random, flavour: Flavour) {
    this.#random = random
    this.#flavour = flavour
  }

  nextId(): number {
    return this.#next++
  }

  part(depth: number): Plan {
    if (depth <= 0 || this.#operationsLeft <= 0 || this.#random.chance(0.25)) return this.#leaf()
    const id = this.nextId()
    switch (this.#random.weighted([[4, 'sequence'] as const, [6, 'parallel'], [2, 'attempt']])) {
      case 'sequence':
        return { id, kind: 'sequence', parts: this.#parts(depth) }
      case 'parallel': {
        const racing = this.#flavour === 'settled' ? 0 : 5
        const how = this.#random.weighted([
          [4, 'all'] as const,
          [2, 'allSettled'],
          [1, 'any'],
          [racing, 'race'],
        ])
        return { id, kind: 'parallel', how, parts: this.#parts(depth) }
      }
      case 'attempt': {
        const caught = this.#random.chance(0.8) ? this.part(depth - 2) : null
        const last = this.#random.chance(0.4) ? this.part(0) : null
        return { id, kind: 'attempt', body: this.part(depth - 1), caught, last }
      }
    }
  }

  #parts(depth: number): Plan[] {
    return Array.from({ length: 2 + this.#random.below(2) }, () => this.part(depth - 1))
  }

  #leaf(): Plan {
    const id = this.nextId()
    const random = this.#random
    if (this.#operationsLeft <= 0) return { id, kind: 'ticks', length: random.below(6) }
    const isOrdered = this.#flavour === 'ordered'
    const children = isOrdered || this.#childrenLeft <= 0 ? 0 : 1
    const outside = isOrdered ? 0 : 1
    const kind = random.weighted([
      [10, 'step'] as const,
      [4, 'sleep'],
      [3 * outside, 'signal'],
      [2 * outside, 'send'],
      [2 * children, 'child'],
      [1 * children, 'start_child'],
      [1.5 * children, 'all'],
      [1, 'now'],
      [1, 'random'],
      [0.5, 'uuid'],
      [2, 'ticks'],
      [0.5, 'throw'],
    ])
    const caught = random.chance(0.75)
    this.#operationsLeft--
    switch (kind) {
      case 'step':
        return { id, kind, step: this.#step(), caught }
      case 'sleep':
        return { id, kind, minutes: 1 + random.below(4) }
      case 'signal': {
        const timeoutMinutes = random.chance(0.5) ? 1 + random.below(4) : null
        return { id, kind, token: random.pick(TOKENS), timeoutMinutes, caught: true }
      }
      case 'send':
        return { id, kind, token: random.pick(TOKENS) }
      case 'child':
        return { id, kind, body: this.#childBody(), ownId: this.#ownId(id), caught }
      case 'start_child':
        return { id, kind, body: this.#childBody(), ownId: this.#ownId(id) }
      case 'all': {
        const count = random.below(4)
        const bodies = Array.from({ length: count }, () => this.#childBody())
        const concurrency = random.chance(0.5) ? 1 + random.below(2) : null
        const mode = random.pick(['failFast', 'waitAll', 'settled'] as const)
        return { id, kind, bodies, concurrency, mode }
      }
      case 'now':
      case 'random':
      case 'uuid':
        return { id, kind }
      case 'ticks':
        return { id, kind, length: random.below(30) }
      case 'throw':
        return { id, kind }
    }
  }

  /** Sometimes one that two children of a body ask for. */
  #ownId(id: number): string | null {
    if (this.#flavour === 'any' && this.#random.chance(0.15)) return 'shared'
    return this.#random.chance(0.3) ? `own-${id}` : null
  }

  #childBody(): Plan {
    this.#childrenLeft--
    const random = this.#random
    const id = this.nextId()
    switch (random.weighted([[5, 'step'] as const, [2, 'sleep'], [2, 'parts'], [1, 'throw']])) {
      case 'step':
        return { id, kind: 'step', step: this.#step(), caught: false }
      case 'sleep':
        return { id, kind: 'sleep', minutes: 1 + random.below(4) }
      case 'parts':
        return { id, kind: 'sequence', parts: [this.#leaf(), this.#leaf()] }
      case 'throw':
        return { id, kind: 'throw' }
    }
  }

  #step(): StepPlan {
    const random = this.#random
    const macrotasks = this.#flavour === 'ordered' ? 0 : 1
    const pace = random.weighted([
      [3, 'immediate'] as const,
      [2, 'ticks'],
      [macrotasks, 'macrotasks'],
      [6, 'gate'],
    ])
    const retrying = this.#flavour === 'ordered' ? 0 : 1
    const retries = random.weighted([
      [10, 0],
      [retrying, 1],
      [retrying, 2],
    ])
    const failures = retries > 0 ? 1 + random.below(retries + 1) : random.chance(0.2) ? 9 : 0
    return {
      ...{ pace, length: 1 + random.below(pace === 'ticks' ? 30 : 5), failures, retries },
      backoff: random.chance(0.3) ? 'short' : 'long',
      fatal: failures > 0 && random.chance(0.1),
      throwsAtOnce: pace === 'immediate' && random.chance(0.3),
      dispatched: random.chance(0.2),
      // The order of what comes from elsewhere is nobody's to fix.
      remote: this.#flavour !== 'ordered' && random.chance(0.25),
    }
  }
}
