import InvalidLine from '#exceptions/invalid_line'
import type { RawLine } from '#services/airport_file'
import { airportValidator, type AirportLine } from '#validators/airport'
import { defineStep } from '@adonis-agora/durable'

export const validateLine = defineStep(
  'line.validate',
  async (line: RawLine): Promise<AirportLine> => {
    const [error, airport] = await airportValidator.tryValidate(line)
    if (error) throw new InvalidLine(error.messages)
    return airport
  }
)
