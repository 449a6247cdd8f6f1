/** How long this process was at work, in ms: what others on the machine do adds nothing to it. */
export function cpuTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
