import { setImmediate } from 'node:timers'
import type { Macrotask } from '../replay/turn.ts'

/** Two immediates queued together run back to back: neither timers nor I/O callbacks fall between them. */
export const MACROTASK: Macrotask = (open, close) => {
  setImmediate(open)
  setImmediate(close)
}
