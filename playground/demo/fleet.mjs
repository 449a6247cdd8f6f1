import { readFileSync } from 'node:fs'

/** The end of a process's log. */
function tailOf({ logFile }) {
  return readFileSync(logFile, 'utf8').split('\n').slice(-20).join('\n')
}

function hasEnded({ exitCode, signalCode }) {
  return exitCode !== null || signalCode !== null
}

/** The workers of a demo, by name: real processes of `node ace durable:work`. */
export class Fleet {
  #processes
  #names
  #concurrency
  #say
  #workers = new Map()

  constructor({ processes, names, concurrency, say }) {
    this.#processes = processes
    this.#names = names
    this.#concurrency = concurrency
    this.#say = say
  }

  start() {
    for (const name of this.#names) this.#start(name)
  }

  /** Stops all as a deployment does. Resolves to their names and exit codes. */
  stop() {
    this.#workers.clear()
    return this.#processes.stop()
  }

  /** Kills a worker as a machine that goes away does, and starts it again. False: it has died by itself. */
  async killAndStartAgain({ name, runs }) {
    const worker = this.#workers.get(name)
    if (hasEnded(worker)) return false
    worker.kill('SIGKILL')
    await worker.closed
    this.#say(`${name} killed (SIGKILL), process ${worker.pid}, with ${runs} runs in its hands`)
    this.#start(name)
    return true
  }

  /**
   * Starts again what died by SIGKILL, as a supervisor does, and resolves to the names. Throws, with the end of its
   * log, when a worker has ended in another way.
   */
  async supervise() {
    const died = [...this.#workers.values()].filter(hasEnded)
    for (const worker of died) {
      if (worker.signalCode !== 'SIGKILL')
        throw new Error(`${worker.name} ended by itself. Its log ends with:\n${tailOf(worker)}`)
      await worker.closed
      this.#say(`${worker.name} died (SIGKILL), process ${worker.pid}`)
      this.#start(worker.name)
    }
    return died.map(({ name }) => name)
  }

  /** Whether every worker is at work: one that was started again may still boot when the last line is done. */
  async isUp(progress) {
    const announced = await progress.announced()
    return [...this.#workers.values()].every(
      (worker) => !hasEnded(worker) && announced.has(worker.pid)
    )
  }

  #start(name) {
    const args = ['ace.js', 'durable:work', `--name=${name}`, '--json']
    const worker = this.#processes.start(name, [...args, `--concurrency=${this.#concurrency}`])
    this.#workers.set(name, worker)
    this.#say(`${name} started, process ${worker.pid}`)
  }
}
