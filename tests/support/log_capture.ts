import type { RunLogger } from '../../src/types/step.ts'

/** Keeps what was logged, for assertions. */
export class LogCapture implements RunLogger {
  readonly lines: { level: string; args: unknown[] }[] = []
  debug = (...args: unknown[]) => void this.lines.push({ level: 'debug', args })
  info = (...args: unknown[]) => void this.lines.push({ level: 'info', args })
  warn = (...args: unknown[]) => void this.lines.push({ level: 'warn', args })
  error = (...args: unknown[]) => void this.lines.push({ level: 'error', args })
}
