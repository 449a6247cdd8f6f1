import { airportLines, type RawLine } from '#services/airport_file'
import { defineStep } from '@adonis-agora/durable'

/** Counts the lines of the file. */
export const countLines = defineStep('file.count', async () => {
  const lines = await airportLines()
  return lines.length
})

/** Reads the lines `from` up to and without `to`, of those that are there when only `every` n-th counts. */
export const readLines = defineStep(
  'file.read',
  async (part: { from: number; to: number; every: number }): Promise<RawLine[]> => {
    const lines = await airportLines()
    return lines.filter((_, n) => n % part.every === 0).slice(part.from, part.to)
  }
)
