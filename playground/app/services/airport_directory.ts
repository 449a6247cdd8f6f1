import Airport from '#models/airport'
import type { AirportFacts } from '#services/airport_enricher'
import { Step } from '@adonis-agora/durable'
import db from '@adonisjs/lucid/services/db'

/** The airports that can be looked up by code. */
export default class AirportDirectory {
  /** Stores an airport under its number in the file: storing it again writes the same row. */
  @Step()
  async store(facts: AirportFacts): Promise<{ iata: string }> {
    const airport = new Airport().fill({ ...facts, writes: 1 })
    const row = Object.fromEntries(
      Object.entries(airport.$attributes).map(([attribute, value]) => [
        Airport.$getColumn(attribute)?.columnName,
        value,
      ])
    )
    await db
      .table(Airport.table)
      .insert(row)
      .onConflict('source_id')
      .merge({ ...row, writes: db.raw('airports.writes + 1') })
    return { iata: facts.iata }
  }
}
