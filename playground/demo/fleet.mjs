import { readFileSync } from 'node:fs'

/** The end of a process's log. */
function tailOf({ logFile }) {
  return readFileSync(logFile, 'utf8').split('\n').slice(-20).join('\n')
}

/** The workers of a demo, by name: real processes of `node ace durable:work`. */
export class Fleet {
  #processes
  #concurrency
  #say
  #workers = new Map()

  constructor({ processes, concurrency, say }) {
    this.#processes = processes
    this.#concurrency = concurrency
    this.#say = say
  }

  start(name) {
    const args = ['ace.js', 'durable:work', `--name=${name}`, '--json']
    const worker = this.#processes.start(name, [...args, `--concurrency=${this.#concurrency}`])
    this.#workers.set(name, worker)
    this.#say(`${name} started, process ${worker.pid}`)
  }

  /** Kills a worker as a machine that goes away does, and starts it again under its name. */
  async killAndStartAgain({ name, runs }) {
    const worker = this.#workers.get(name)
    this.#workers.delete(name)
    worker.kill('SIGKILL')
    await worker.closed
    this.#say(`${name} killed (SIGKILL), process ${worker.pid}, with ${runs} runs in its hands`)
    this.start(name)
  }

  /** Whether every worker is at work: the one that was started again may still boot when the last line is done. */
  isUp(progress) {
    this.checkAlive()
    return [...this.#workers.values()].every((worker) => progress.isAnnounced(worker))
  }

  /** Throws, with the end of its log, when a worker has ended that nobody killed. */
  checkAlive() {
    for (const worker of this.#workers.values()) {
      if (worker.exitCode === null && worker.signalCode === null) continue
      throw new Error(`${worker.name} ended by itself. Its log ends with:\n${tailOf(worker)}`)
    }
  }
}
