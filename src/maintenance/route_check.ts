import type { UnservedDeadLetters, UnservedRoute } from '../engine/unserved_routes.ts'

const RECHECK_MS = 30_000

export interface RouteCheckParams {
  /** Failure routes whose handler nobody serves now. */
  routes: () => Promise<readonly UnservedRoute[]>
  /** Handlers of dead runs that nobody serves now. */
  deadLetters: () => Promise<readonly UnservedDeadLetters[]>
  warn: (message: string) => void
  /** How long a handler's own workers have to start before it is reported, in ms. Default 30 s. */
  recheckMs?: number | undefined
}

/** Reports handlers of failures and deaths that nobody serves, once, after a second look. */
export class RouteCheck {
  #params: RouteCheckParams
  #unserved: readonly string[] | null = null

  constructor(params: RouteCheckParams) {
    this.#params = params
  }

  /** Resolves to in how many ms to look again; Infinity = the check is over. */
  async runOnce(): Promise<number> {
    const before = this.#unserved
    const found = await this.#warnings()
    this.#unserved = found
    if (before === null) return found.length > 0 ? (this.#params.recheckMs ?? RECHECK_MS) : Infinity
    for (const warning of found) if (before.includes(warning)) this.#params.warn(warning)
    return Infinity
  }

  async #warnings(): Promise<string[]> {
    const routes = await this.#params.routes()
    const deadLetters = await this.#params.deadLetters()
    return [...routes.map(ofRoute), ...deadLetters.map(ofDeadLetters)]
  }
}

function ofRoute({ workflow, code, handler }: UnservedRoute): string {
  return (
    `Failures of "${workflow}" with code "${code}" are routed to "${handler}", which is neither registered here nor ` +
    'served by a live worker: their runs would wait for it. Register the workflow, start a worker that has it, or ' +
    'correct the name in "onError"'
  )
}

function ofDeadLetters({ workflow, handler }: UnservedDeadLetters): string {
  const whose = workflow === null ? 'Dead runs' : `Dead runs of "${workflow}"`
  return (
    `${whose} are handed to "${handler}", which is neither registered here nor served by a live worker: its runs would ` +
    'wait for one. Register the workflow, start a worker that has it, or correct the name in "deadLetterWorkflow"'
  )
}
