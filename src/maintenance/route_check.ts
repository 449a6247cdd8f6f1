import type { UnservedRoute } from '../engine/unserved_routes.ts'

const RECHECK_MS = 30_000

export interface RouteCheckParams {
  /** Failure routes whose handler nobody serves now. */
  find: () => Promise<readonly UnservedRoute[]>
  warn: (message: string) => void
  /** How long a handler's own workers have to start before its route is reported, in ms. Default 30 s. */
  recheckMs?: number | undefined
}

/** Reports failure routes whose handler nobody serves, once, after a second look. */
export class RouteCheck {
  #params: RouteCheckParams
  #unserved: readonly string[] | null = null

  constructor(params: RouteCheckParams) {
    this.#params = params
  }

  /** Resolves to in how many ms to look again; Infinity = the check is over. */
  async runOnce(): Promise<number> {
    const before = this.#unserved
    const unserved = await this.#params.find()
    const found = unserved.map(warningOf)
    this.#unserved = found
    if (before === null) return found.length > 0 ? (this.#params.recheckMs ?? RECHECK_MS) : Infinity
    for (const warning of found) if (before.includes(warning)) this.#params.warn(warning)
    return Infinity
  }
}

function warningOf({ workflow, code, handler }: UnservedRoute): string {
  return (
    `Failures of "${workflow}" with code "${code}" are routed to "${handler}", which is neither registered here nor ` +
    'served by a live worker: their runs would wait for it. Register the workflow, start a worker that has it, or ' +
    'correct the name in "onError"'
  )
}
