import { enrich, type AirportFacts } from '#services/airport_enricher'
import type { AirportLine } from '#validators/airport'
import { defineStep } from '@adonis-agora/durable'

export const enrichLine = defineStep('line.enrich', (line: AirportLine): AirportFacts =>
  enrich(line)
)
