/** A failure as one line: what is matched, and what is said. */
export function errorLine(error: {
  name: string
  message: string
  code?: string | undefined
  runId?: string | undefined
}): string {
  const of = error.runId === undefined ? '' : ` (child run ${error.runId})`
  return `${error.code ?? error.name}: ${error.message.replaceAll(/\s*\n\s*/g, ' ')}${of}`
}
