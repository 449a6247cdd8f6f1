import { airportLines, linesOf, type RawLine } from '#services/airport_file'
import { defineStep } from '@adonis-agora/durable'

/** Counts the lines of the file. */
export const countLines = defineStep('file.count', async () => {
  const lines = await airportLines()
  return lines.length
})

/** Reads the lines `from` up to and without `to`, of the `of` lines that stand for the file. */
export const readLines = defineStep(
  'file.read',
  async (part: { from: number; to: number; of: number }): Promise<RawLine[]> => {
    const lines = linesOf(await airportLines(), part.of)
    return lines.slice(part.from, part.to)
  }
)
