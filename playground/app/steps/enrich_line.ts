import { enrich, type AirportFacts } from '#services/airport_enricher'
import type { AirportLine } from '#validators/airport'
import { defineStep } from '@adonis-agora/durable'

/** Qamdo Bangda in Tibet, at 4,334 metres, is the one airport of the file above this. */
const HIGHEST_METRES = 4_300

/**
 * Broken on purpose, to show what becomes of a line that kills its worker as a fault of native code does. The demo
 * replaces this file by demo/fixed/enrich_line.ts on the way.
 */
export const enrichLine = defineStep('line.enrich', (line: AirportLine): AirportFacts => {
  const facts = enrich(line)
  if (facts.elevationMetres > HIGHEST_METRES) process.kill(process.pid, 'SIGKILL')
  return facts
})
