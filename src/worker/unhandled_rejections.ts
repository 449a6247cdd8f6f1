import { currentScope } from '../engine/scope.ts'

/*
 * A promise that a body or a step left to reject is a failure of that run, not of the process. The listener is
 * shared by the workers of a process.
 */
let users = 0

/** Attributes unhandled rejections to the runs they come from, until the returned function is called. */
export function attributeUnhandledRejections(): () => void {
  if (users++ === 0) process.on('unhandledRejection', attribute)
  let isOver = false
  return () => {
    if (isOver) return
    isOver = true
    if (--users === 0) process.off('unhandledRejection', attribute)
  }
}

function attribute(reason: unknown): void {
  const scope = currentScope()
  if (scope) return scope.fail(reason)
  // Without this listener Node would end the process; with a listener of the application's own it would not.
  if (process.listenerCount('unhandledRejection') === 1) throw reason
}
