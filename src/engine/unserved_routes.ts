import { claimKey } from '../core/name.ts'
import type { EngineContext } from './engine_context.ts'
import { servedKeys } from './worker_descriptor.ts'

/** A failure route whose handler nobody serves. */
export interface UnservedRoute {
  workflow: string
  /** `*` = the catch-all. */
  code: string
  handler: string
}

/** Failure routes whose handler is neither registered here nor served by a live worker. */
export async function unservedRoutes({
  registry,
  routing,
  options,
  discover,
  store: open,
}: EngineContext): Promise<UnservedRoute[]> {
  // Asked by a process that runs no worker, nothing may have been looked for yet.
  await discover()
  const routes: (UnservedRoute & { version: string })[] = []
  for (const definition of registry.workflows())
    for (const { code, handler } of await routing.routesOf(definition))
      if (!registry.workflow(handler.name, handler.version))
        routes.push({
          workflow: definition.name,
          code: code ?? '*',
          handler: handler.name,
          version: handler.version,
        })
  if (routes.length === 0) return []
  const served = await servedKeys(await open())
  return routes
    .filter(
      ({ handler, version }) =>
        !options.namespaces.some((namespace) => served.has(claimKey(namespace, handler, version)))
    )
    .map(({ workflow, code, handler }) => ({ workflow, code, handler }))
}
