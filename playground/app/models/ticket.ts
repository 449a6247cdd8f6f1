import { BaseModel, column } from '@adonisjs/lucid/orm'

/** Something that a person has to look at. */
export default class Ticket extends BaseModel {
  @column({ isPrimary: true })
  declare id: number

  /** The run that died: one ticket each. */
  @column()
  declare runId: string

  /** The run to retry once the cause is gone. */
  @column()
  declare retryRunId: string

  @column()
  declare title: string

  @column()
  declare reason: string

  /** What the run had been given. */
  @column({ consume: (text: string) => JSON.parse(text) })
  declare payload: unknown
}
