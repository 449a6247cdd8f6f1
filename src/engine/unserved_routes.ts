import { claimKey } from '../core/name.ts'
import type { NamedWorkflow } from '../replay/context.ts'
import type { EngineContext } from './engine_context.ts'
import { servedKeys } from './worker_descriptor.ts'

/** A failure route whose handler nobody serves. */
export interface UnservedRoute {
  workflow: string
  /** `*` = the catch-all. */
  code: string
  handler: string
}

/** A workflow whose dead runs go to a handler that nobody serves; null = the default of the configuration. */
export interface UnservedDeadLetters {
  workflow: string | null
  handler: string
}

/** Failure routes whose handler is neither registered here nor served by a live worker. */
export async function unservedRoutes(context: EngineContext): Promise<UnservedRoute[]> {
  const { registry, routing, discover } = context
  // Asked by a process that runs no worker, nothing may have been looked for yet.
  await discover()
  const found = await Promise.all(
    registry.workflows().map(async (definition) => {
      const routes = await routing.routesOf(definition)
      return routes.map(({ code, handler }) => ({
        workflow: definition.name,
        code: code ?? '*',
        handler,
      }))
    })
  )
  return unserved(context, found.flat())
}

/** Handlers of dead runs that are neither registered here nor served by a live worker. */
export async function unservedDeadLetters(context: EngineContext): Promise<UnservedDeadLetters[]> {
  await context.discover()
  return unserved(context, await context.routing.deadLetterHandlers())
}

/** Those whose handler nobody serves, with its name. */
async function unserved<T extends { handler: NamedWorkflow }>(
  { registry, options, store: open }: EngineContext,
  routes: readonly T[]
): Promise<(Omit<T, 'handler'> & { handler: string })[]> {
  const elsewhere = routes.filter(
    ({ handler }) => !registry.workflow(handler.name, handler.version)
  )
  if (elsewhere.length === 0) return []
  const served = await servedKeys(await open())
  const isServed = ({ name, version }: NamedWorkflow) =>
    options.namespaces.some((namespace) => served.has(claimKey(namespace, name, version)))
  return elsewhere
    .filter(({ handler }) => !isServed(handler))
    .map((route) => ({ ...route, handler: route.handler.name }))
}
