import { setTimeout as delay } from 'node:timers/promises'

/** The share of the lines that have ended when a worker is killed. */
const KILL_AT = 0.4
/** How full the hands of the busiest worker are then. */
const KILL_FULL = 0.8
const SHOW_MS = 1_000
const STALL_MS = 60_000

/**
 * Watches until the import has ended and all workers are up, and kills the busiest one once on the way. Resolves to
 * whether one was killed; rejects when a worker ends by itself, or nothing has moved for a minute.
 */
export async function watch({ progress, fleet, lines, concurrency, say }) {
  let isKilled = false
  let shown = { at: performance.now(), done: 0 }
  let moved = shown
  for (;;) {
    const { byStatus, done, hasEnded } = progress.read()
    const busiest = !isKilled && !hasEnded && done >= lines * KILL_AT && progress.busiest()
    if (busiest && busiest.runs >= concurrency * KILL_FULL) {
      await fleet.killAndStartAgain(busiest)
      isKilled = true
    }
    const at = performance.now()
    if (at - shown.at >= SHOW_MS || (hasEnded && done > shown.done)) {
      const rate = Math.round(((done - shown.done) / (at - shown.at)) * 1000)
      const statuses = Object.entries(byStatus).map(([status, runs]) => `${status} ${runs}`)
      say(`${done} of ${lines} lines done, ${rate}/s   runs: ${statuses.join(', ') || 'none yet'}`)
      shown = { at, done }
    }
    if (hasEnded && fleet.isUp(progress)) return isKilled
    fleet.checkAlive()
    if (done > moved.done) moved = { at, done }
    if (at - moved.at > STALL_MS) throw new Error('Nothing has moved for a minute')
    // Before the kill a small file needs a close look: it is done in less than a second.
    await delay(isKilled ? 100 : 2)
  }
}
