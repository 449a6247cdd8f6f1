import { setTimeout as delay } from 'node:timers/promises'

/** The share of the lines that have ended when a worker is killed. */
const KILL_AT = 0.4
/** How full the hands of the busiest worker are then. */
const KILL_FULL = 0.8
const SHOW_MS = 1_000
const STALL_MS = 60_000
const LOOK_MS = 50
/** A small file is done in less than a second: until a worker has been killed it needs a close look. */
const SMALL_FILE = 500
const CLOSE_LOOK_MS = 2

/** Watches an import: shows how far it is, starts workers again that die, and kills a busy one once. */
export class Watch {
  #progress
  #fleet
  #lines
  #concurrency
  #say
  #shown = { at: performance.now(), done: 0 }
  /** Whether a busy worker has been killed. */
  isKilled = false
  /** How often workers have died that nobody here killed. */
  deaths = 0

  constructor({ progress, fleet, lines, concurrency, say }) {
    this.#progress = progress
    this.#fleet = fleet
    this.#lines = lines
    this.#concurrency = concurrency
    this.#say = say
  }

  /**
   * Watches until the import has ended, all workers are up and `isOver(status)` resolves to true. Resolves to the
   * status of the import; rejects when nothing has happened for a minute.
   */
  async untilEnded(isOver = async () => true) {
    let moved = { at: performance.now(), done: 0, deaths: this.deaths }
    for (;;) {
      const { byStatus, done, ended } = await this.#progress.read()
      if (ended === null) await this.#killBusy(done)
      await this.#supervise()
      this.#show({ byStatus, done, ended })
      if (ended !== null && (await this.#fleet.isUp(this.#progress)) && (await isOver(ended)))
        return ended
      const at = performance.now()
      if (done !== moved.done || this.deaths > moved.deaths)
        moved = { at, done, deaths: this.deaths }
      if (at - moved.at > STALL_MS) throw new Error('Nothing has happened for a minute')
      await delay(this.isKilled || this.#lines > SMALL_FILE ? LOOK_MS : CLOSE_LOOK_MS)
    }
  }

  async #killBusy(done) {
    if (this.isKilled || done < this.#lines * KILL_AT) return
    const busiest = await this.#progress.busiest()
    if (!busiest || busiest.runs < this.#concurrency * KILL_FULL) return
    this.isKilled = await this.#fleet.killAndStartAgain(busiest)
  }

  async #supervise() {
    const died = await this.#fleet.supervise()
    this.deaths += died.length
    const lost = died.length > 0 && (await this.#progress.mostOftenLost())
    if (lost)
      this.#say(`most often in the hands of workers that died: ${lost.id}, ${lost.times + 1} times`)
  }

  #show({ byStatus, done, ended }) {
    const at = performance.now()
    const isDue = at - this.#shown.at >= SHOW_MS
    if (done === this.#shown.done ? !isDue || ended !== null : !isDue && ended === null) return
    const rate = Math.round(((done - this.#shown.done) / (at - this.#shown.at)) * 1000)
    const statuses = Object.entries(byStatus).map(([status, runs]) => `${status} ${runs}`)
    this.#say(
      `${done} of ${this.#lines} lines done, ${rate}/s   runs: ${statuses.join(', ') || 'none yet'}`
    )
    this.#shown = { at, done }
  }
}
