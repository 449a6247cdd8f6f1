import vine from '@vinejs/vine'
import type { Infer } from '@vinejs/vine/types'
import { IANAZone } from 'luxon'

const knownZone = vine.createRule((value, _options, field) => {
  if (typeof value !== 'string' || IANAZone.isValidZone(value)) return
  field.report('The {{ field }} field must be a time zone', 'zone', field)
})

/** What a line of the file must hold before its airport can be listed by code. */
export const airportValidator = vine.create({
  id: vine.number().withoutDecimals().positive(),
  name: vine.string().trim().minLength(1).maxLength(255),
  city: vine.string().trim().minLength(1).maxLength(255),
  country: vine.string().trim().minLength(1).maxLength(255),
  iata: vine.string().regex(/^[A-Z]{3}$/),
  icao: vine.string().regex(/^[A-Z0-9]{4}$/),
  latitude: vine.number().range([-90, 90]),
  longitude: vine.number().range([-180, 180]),
  altitude: vine.number().range([-1500, 30000]),
  tz: vine.string().use(knownZone()),
})

/** A line that has passed. The altitude is in feet. */
export type AirportLine = Infer<typeof airportValidator>
