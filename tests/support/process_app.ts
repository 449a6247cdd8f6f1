import type { Store } from '../../src/contracts/store.ts'
import type { GivenOptions } from '../../src/options.ts'
import type { RunLogger } from '../../src/types/step.ts'
import { DurableApp } from './durable_app.ts'

/**
 * Warnings and errors go to the standard error of the process, where the test that started it sees them; not those of
 * failed attempts and of runs that were lost again and again, which the tests mean to have.
 */
const LOG: RunLogger = {
  debug: () => {},
  info: () => {},
  warn: (...args) => {
    if (!isMeant(args[0])) console.error('warn', ...args)
  },
  error: (...args) => console.error('error', ...args),
}

function isMeant(facts: unknown): boolean {
  if (typeof facts !== 'object' || facts === null) return false
  return 'attempt' in facts || 'recoveryAttempts' in facts
}

/** The application of a process that was started by a test, or that starts others. */
export function processApp(store: Store, options: GivenOptions = {}): DurableApp {
  return new DurableApp({ store, options, logger: LOG })
}
