import type { Store } from '../../src/contracts/store.ts'
import type { GivenOptions } from '../../src/options.ts'
import type { RunLogger } from '../../src/types/step.ts'
import { DurableApp } from './durable_app.ts'

/**
 * Warnings and errors go to the standard error of the process, where the test that started it sees them; not those of
 * failed attempts, which the tests mean to have.
 */
const LOG: RunLogger = {
  debug: () => {},
  info: () => {},
  warn: (...args) => {
    if (!isOfAttempt(args[0])) console.error('warn', ...args)
  },
  error: (...args) => console.error('error', ...args),
}

function isOfAttempt(facts: unknown): boolean {
  return typeof facts === 'object' && facts !== null && 'attempt' in facts
}

/** The application of a process that was started by a test, or that starts others. */
export function processApp(store: Store, options: GivenOptions = {}): DurableApp {
  return new DurableApp({ store, options, logger: LOG })
}
