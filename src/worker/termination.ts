/**
 * Whether the application's termination has begun or is over. A signal may come while it still boots; then its hooks
 * run and the boot goes on, up to a state in which it reads as ready, and again as terminating.
 */
export function hasTerminationBegun(app: {
  isTerminating: boolean
  isTerminated: boolean
}): boolean {
  return app.isTerminating || app.isTerminated
}
