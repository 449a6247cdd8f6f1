import { fieldsOf, type LineIssue } from '#exceptions/invalid_line'
import RejectedLine from '#models/rejected_line'
import type { RawLine } from '#services/airport_file'
import { Step } from '@adonis-agora/durable'
import db from '@adonisjs/lucid/services/db'

/** A line that is not valid, and why. */
export interface Rejection {
  /** The run that read it. */
  runId: string
  line: RawLine
  issues: LineIssue[]
}

/** The lines that are not in the directory: somebody may complete them. */
export default class RejectedLines {
  /** Records a line under the run that read it: recording it again writes the same row. */
  @Step()
  async record({ runId, line, issues }: Rejection): Promise<{ fields: string[] }> {
    const fields = fieldsOf(issues)
    const row = {
      run_id: runId,
      line: JSON.stringify(line),
      fields: JSON.stringify(fields),
      issues: JSON.stringify(issues),
    }
    await db
      .table(RejectedLine.table)
      .insert({ ...row, writes: 1 })
      .onConflict('run_id')
      .merge({ ...row, writes: db.raw('rejected_lines.writes + 1') })
    return { fields }
  }
}
