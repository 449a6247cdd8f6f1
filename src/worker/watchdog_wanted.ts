import { url } from 'node:inspector'

/**
 * Whether the watchdog may end this process when its event loop hangs: not where somebody may be looking at it, in
 * development, in tests and under a debugger.
 */
export function isWatchdogWanted(app: { inDev: boolean; inTest: boolean }): boolean {
  return !app.inDev && !app.inTest && url() === undefined
}
