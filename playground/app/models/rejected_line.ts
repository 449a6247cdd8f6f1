import type { LineIssue } from '#exceptions/invalid_line'
import type { RawLine } from '#services/airport_file'
import { BaseModel, column } from '@adonisjs/lucid/orm'

/** A line of the file that is not valid. */
export default class RejectedLine extends BaseModel {
  @column({ isPrimary: true })
  declare id: number

  /** The run that read the line: one row each, however often it is recorded. */
  @column()
  declare runId: string

  @column({ consume: (text: string) => JSON.parse(text) })
  declare line: RawLine

  /** What something is wrong with, each once. */
  @column({ consume: (text: string) => JSON.parse(text) })
  declare fields: string[]

  @column({ consume: (text: string) => JSON.parse(text) })
  declare issues: LineIssue[]

  /** How often the row was written: more than once where a worker died between the write and its record. */
  @column()
  declare writes: number
}
