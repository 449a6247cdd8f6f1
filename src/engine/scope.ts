import { AsyncLocalStorage } from 'node:async_hooks'
import type { WorkflowCtx } from '../types/context.ts'

/**
 * What the current asynchronous call chain is part of. `fail` ends the turn or the attempt with an error that nobody
 * handled; `queried` is told a query that the body sends to the database by itself.
 */
export type Scope =
  | {
      kind: 'body'
      ctx: WorkflowCtx
      fail: (reason: unknown) => void
      queried: (query: string) => void
    }
  | { kind: 'step'; name: string; fail: (reason: unknown) => void }

const storage = new AsyncLocalStorage<Scope>()

/** The body or step that the caller runs in; undefined outside of both. */
export function currentScope(): Scope | undefined {
  return storage.getStore()
}

/** A query is sent by the caller. One of a body ends its turn: each replay would send it again. */
export function noteQuery(query: string): void {
  const scope = currentScope()
  if (scope?.kind === 'body') scope.queried(query)
}

export function runInScope<T>(scope: Scope, fn: () => T): T {
  return storage.run(scope, fn)
}
