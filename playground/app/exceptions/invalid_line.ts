import { FatalError } from '@adonis-agora/durable'

/** One thing that is wrong with a line. */
export interface LineIssue {
  field: string
  rule: string
  message: string
}

/** A line of the file does not hold what an airport needs. Reading it again would not change that. */
export default class InvalidLine extends FatalError<LineIssue[]> {
  static override readonly code = 'invalid_line'

  constructor(issues: LineIssue[]) {
    super(`invalid: ${fieldsOf(issues).join(', ')}`, InvalidLine.code, issues)
  }
}

/** The fields that something is wrong with, each once. */
export function fieldsOf(issues: readonly LineIssue[]): string[] {
  return [...new Set(issues.map(({ field }) => field))]
}
