import { UNROUTED_CODES } from '../errors.ts'

/** A failure route whose handler has been resolved to a name. */
export interface FailureRouteRow {
  /** Null = the catch-all. */
  code: string | null
  /** Name of the handler workflow. */
  workflow: string
}

export type RouteDecision<Route> =
  /** The failure goes to the handler; the run gets the tag. */
  | { kind: 'follow'; route: Route; tag: string }
  /** A route matches, and is not followed. */
  | { kind: 'unrouted'; reason: string }
  | { kind: 'none' }

const SCHEMA_CODES: ReadonlySet<string> = new Set(['invalid_input', 'invalid_output'])

/**
 * Which route a failure takes: that of its code, for schema failures then that of `schema_validation`, then the
 * catch-all. A handler that is in the chain of workflows that led here is not started again.
 *
 * It is asked about failures of bodies only: cancelling and dead-lettering end a run without it. A body that fails with
 * `cancelled` or `max_recovery_attempts` has got that code from a child.
 *
 * @param params.chain workflows whose failures were routed on the way to this run, and its own
 */
export function decideRoute<Route extends FailureRouteRow>(params: {
  code: string | undefined
  routes: readonly Route[]
  chain: readonly string[]
}): RouteDecision<Route> {
  const { code, routes, chain } = params
  if (code !== undefined && UNROUTED_CODES.has(code)) return { kind: 'none' }
  const by = (wanted: string | null) => routes.find((route) => route.code === wanted)
  const exact = code === undefined ? undefined : by(code)
  const schema = code !== undefined && SCHEMA_CODES.has(code) ? by('schema_validation') : undefined
  const route = exact ?? schema ?? by(null)
  if (!route) return { kind: 'none' }
  if (chain.includes(route.workflow)) {
    const way = [...chain, route.workflow].join(' -> ')
    return {
      kind: 'unrouted',
      reason: `the route leads back to where the failure came from: ${way}`,
    }
  }
  return { kind: 'follow', route, tag: `onError:${route.code ?? '*'}` }
}
