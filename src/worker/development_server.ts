/**
 * Whether this process was started by AdonisJS's development server, which kills it at every save: what such a process
 * loses says nothing about its runs.
 *
 * @param env default that of the process
 */
export function isUnderDevelopmentServer(
  env: Record<string, string | undefined> = process.env
): boolean {
  return env.DEV_MODE === 'true'
}
