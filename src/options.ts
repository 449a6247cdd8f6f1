import { inspect } from 'node:util'
import { unknownKey } from './core/known_options.ts'
import { E_INVALID_CONFIG } from './errors.ts'
import { OPTIONS, WORKER_OPTIONS, type OptionRow, type OptionTable } from './option_table.ts'

type ValueOf<Row> = Row extends OptionRow<infer T> ? T : never
type ValuesOf<Table> = { [Key in keyof Table]: ValueOf<Table[Key]> }
type GivenOf<Table> = { [Key in keyof Table]?: ValueOf<Table[Key]> | undefined }

/** The options of an application with every default filled in. Null: the computed default of the table. */
export type ResolvedOptions = Readonly<ValuesOf<typeof OPTIONS>> & {
  readonly worker: Readonly<ValuesOf<typeof WORKER_OPTIONS>>
}

/** Options as an application writes them; what is left out or undefined has its default. */
export type GivenOptions = GivenOf<typeof OPTIONS> & {
  worker?: GivenOf<typeof WORKER_OPTIONS> | undefined
}

function refuse(option: string, value: unknown, expected: string): never {
  throw new E_INVALID_CONFIG([option, `got ${inspect(value, { depth: 1 })}, expected ${expected}`])
}

function refuseUnknown(prefix: string, given: object, known: readonly string[]): void {
  const unknown = unknownKey(given, known, prefix)
  if (unknown)
    throw new E_INVALID_CONFIG([
      `${prefix}${unknown.key}`,
      `there is no such option. ${unknown.hint}`,
    ])
}

function fill<Table extends OptionTable>(
  table: Table,
  params: { prefix: string; given: object }
): ValuesOf<Table> {
  const entries = Object.entries(table).map(([key, row]) => {
    const value: unknown = Reflect.get(params.given, key)
    if (value === undefined) return [key, row.default]
    if (!row.accepts(value)) refuse(`${params.prefix}${key}`, value, row.expected)
    return [key, value]
  })
  return Object.fromEntries(entries)
}

/**
 * Fills in the defaults and checks what was given: E_INVALID_CONFIG names the option, what it got and what it
 * expects; an unknown option is refused with the nearest known name.
 *
 * @param alsoKnown names beside the options that the same object may hold
 */
export function resolveOptions(
  given: object = {},
  alsoKnown: readonly string[] = []
): ResolvedOptions {
  refuseUnknown('', given, [...Object.keys(OPTIONS), 'worker', ...alsoKnown])
  const worker: unknown = Reflect.get(given, 'worker') ?? {}
  if (typeof worker !== 'object' || worker === null) refuse('worker', worker, 'an object')
  refuseUnknown('worker.', worker, Object.keys(WORKER_OPTIONS))

  const options = {
    ...fill(OPTIONS, { prefix: '', given }),
    worker: fill(WORKER_OPTIONS, { prefix: 'worker.', given: worker }),
  }
  if (options.hangMs <= options.leaseMs) {
    refuse('hangMs', options.hangMs, `more than "leaseMs" (${options.leaseMs})`)
  }
  if (options.idlePollMs < options.pollMs) {
    refuse('idlePollMs', options.idlePollMs, `at least "pollMs" (${options.pollMs})`)
  }
  return options
}
