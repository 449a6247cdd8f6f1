import { countryCode } from '#services/country_codes'
import type { AirportLine } from '#validators/airport'
import { IANAZone } from 'luxon'

const METRES_PER_FOOT = 0.3048
/** January: no northern country has summer time, and the file says what holds in winter. */
const WINTER = Date.UTC(2017, 0, 1)

/** An airport as it is stored. */
export interface AirportFacts {
  sourceId: number
  iata: string
  icao: string
  name: string
  city: string
  country: string
  /** ISO 3166-1; null where the file names no country of today. */
  countryCode: string | null
  /** First part of the time zone, such as `Europe`. */
  region: string
  latitude: number
  longitude: number
  elevationMetres: number
  timeZone: string
  utcOffsetMinutes: number
}

/** The file escapes quotes as SQL does. */
function unescaped(text: string): string {
  return text.replaceAll('\\', '')
}

/** What the line says, in the units and names of the directory, and what follows from it. */
export function enrich(line: AirportLine): AirportFacts {
  const [region = line.tz] = line.tz.split('/')
  return {
    sourceId: line.id,
    iata: line.iata,
    icao: line.icao,
    name: unescaped(line.name),
    city: unescaped(line.city),
    country: line.country,
    countryCode: countryCode(line.country),
    region,
    latitude: line.latitude,
    longitude: line.longitude,
    elevationMetres: Math.round(line.altitude * METRES_PER_FOOT),
    timeZone: line.tz,
    utcOffsetMinutes: IANAZone.create(line.tz).offset(WINTER),
  }
}
