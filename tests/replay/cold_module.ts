import { setImmediate as nextImmediate } from 'node:timers/promises'

// A module that waits for something while it is loaded: whoever imports it first waits too.
await nextImmediate()

export const COLD = true
