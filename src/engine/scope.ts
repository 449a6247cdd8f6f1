import { AsyncLocalStorage } from 'node:async_hooks'
import type { WorkflowCtx } from '../types/context.ts'

/** What the current asynchronous call chain is part of. `fail` ends the turn or the attempt with an error that nobody handled. */
export type Scope =
  | { kind: 'body'; ctx: WorkflowCtx; fail: (reason: unknown) => void }
  | { kind: 'step'; name: string; fail: (reason: unknown) => void }

const storage = new AsyncLocalStorage<Scope>()

/** The body or step that the caller runs in; undefined outside of both. */
export function currentScope(): Scope | undefined {
  return storage.getStore()
}

export function runInScope<T>(scope: Scope, fn: () => T): T {
  return storage.run(scope, fn)
}
