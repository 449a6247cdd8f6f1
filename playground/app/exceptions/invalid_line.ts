import { FatalError } from '@adonis-agora/durable'

/** One thing that is wrong with a line. */
export interface LineIssue {
  field: string
  rule: string
  message: string
}

/** A line of the file does not hold what an airport needs. Reading it again would not change that. */
export default class InvalidLine extends FatalError {
  static override readonly code = 'invalid_line'

  constructor(issues: LineIssue[]) {
    const fields = [...new Set(issues.map(({ field }) => field))]
    super(`invalid: ${fields.join(', ')}`, InvalidLine.code, issues)
  }
}
