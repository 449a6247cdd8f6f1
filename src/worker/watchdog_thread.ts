import { setInterval } from 'node:timers'
import { workerData } from 'node:worker_threads'

/** What the main thread hands over. */
interface WatchdogData {
  shared: SharedArrayBuffer
  /** Ms between two looks. */
  intervalMs: number
  /** Looks without a change after which the process is ended. */
  beats: number
}

const { shared, intervalMs, beats } = workerData as WatchdogData
const counter = new Int32Array(shared)
let last = Atomics.load(counter, 0)
let missed = 0

setInterval(() => {
  const current = Atomics.load(counter, 0)
  missed = current === last ? missed + 1 : 0
  last = current
  // The thread can end the process only from outside: `exit` would end the thread alone.
  if (missed > beats) process.kill(process.pid, 'SIGKILL')
}, intervalMs)
