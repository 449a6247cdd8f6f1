/**
 * How commands that change runs end, for scripts. `done`: something was done, and nothing went wrong. `error`: an
 * argument is not valid, or the command failed for some run. `nothing`: nothing was done, since no run matched, no run
 * was in a state for it, or it was not confirmed.
 */
export const EXIT_CODES = { done: 0, error: 1, nothing: 2 } as const

export type ExitCode = (typeof EXIT_CODES)[keyof typeof EXIT_CODES]
