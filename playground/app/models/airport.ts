import { BaseModel, column } from '@adonisjs/lucid/orm'

export default class Airport extends BaseModel {
  @column({ isPrimary: true })
  declare id: number

  /** The airport's number in the file: one row each, however often it is stored. */
  @column()
  declare sourceId: number

  @column()
  declare iata: string

  @column()
  declare icao: string

  @column()
  declare name: string

  @column()
  declare city: string

  @column()
  declare country: string

  @column()
  declare countryCode: string | null

  @column()
  declare region: string

  @column()
  declare latitude: number

  @column()
  declare longitude: number

  @column()
  declare elevationMetres: number

  @column()
  declare timeZone: string

  @column()
  declare utcOffsetMinutes: number

  /** How often the row was written: more than once where a worker died between the write and its record. */
  @column()
  declare writes: number
}
