import type { Macrotask } from '../replay/turn.ts'

// Taken when the module is loaded, so that a test's fake timers do not stop the engine.
const { setImmediate } = globalThis

/** Two immediates queued together run back to back: neither timers nor I/O callbacks fall between them. */
export const MACROTASK: Macrotask = (open, close) => {
  setImmediate(open)
  setImmediate(close)
}
