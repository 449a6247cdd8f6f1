import { E_INVALID_STEP } from '../errors.ts'
import { LONGEST_TIMER_MS } from './duration.ts'

/** What a step or one call of it may say of its attempts: whole numbers, with the range of each. */
const RANGES = {
  retries: { from: 0, to: 1_000_000, unit: '' },
  timeoutMs: { from: 1, to: LONGEST_TIMER_MS, unit: ' of milliseconds' },
  backoffMs: { from: 0, to: LONGEST_TIMER_MS, unit: ' of milliseconds' },
} as const

/** The terms under which a step is tried; what is left out has its default. */
export type StepTerms = { readonly [Term in keyof typeof RANGES]?: number | undefined }

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  return typeof value === 'number' ? String(value) : `of type ${typeof value}`
}

/** Throws `E_INVALID_STEP`, with the option and its range, unless each is a whole number within its range. */
export function checkStepTerms(step: string, terms: StepTerms): void {
  for (const [term, { from, to, unit }] of Object.entries(RANGES)) {
    const value: unknown = Reflect.get(terms, term)
    if (value === undefined) continue
    if (Number.isInteger(value) && Number(value) >= from && Number(value) <= to) continue
    const expected = `a whole number${unit} from ${from} to ${to}`
    throw new E_INVALID_STEP([step, `"${term}" is ${shown(value)}. Pass ${expected}`])
  }
}
