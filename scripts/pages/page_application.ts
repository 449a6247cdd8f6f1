import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** A run as the engine describes it; what scenarios read of it. */
export interface RunFacts {
  id: string
  workflow: string
  status: string
  namespace: string
  /** When it is to be taken up; null: nobody is to. */
  dueAt: number | null
  input: unknown
  output?: unknown
  error?: { message: string; code?: string; details?: unknown }
  tags: string[]
}

interface NotedCall {
  name: string
  args: unknown[]
}

const ENDED = ['completed', 'failed', 'dead', 'cancelled']
const PATIENCE_MS = 120_000
const POLL_MS = 50

/** The compiled application of a snippet: one process that calls the engine, and workers that may be killed. */
export class PageApplication {
  /** How often a worker was killed. */
  kills = 0
  /** Everything that workers have printed. */
  output = ''
  #folder: string
  #environment: NodeJS.ProcessEnv
  #remote: ChildProcess | undefined
  #worker: ChildProcess | undefined
  #working: Promise<void> | undefined
  #isWorking = false
  #calls = 0

  constructor(folder: string) {
    this.#folder = folder
    this.#environment = {
      HOME: process.env.HOME,
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: join(folder, '../.cache'),
    }
  }

  /** Boots the process that calls the engine. */
  async open(): Promise<void> {
    this.#remote = this.#start('bin/remote.js')
    await this.#answer(0)
  }

  /** Calls a method of the engine. Rejects with what it throws. */
  async call<T = unknown>(method: string, ...args: unknown[]): Promise<T> {
    const id = ++this.#calls
    this.#remote!.send({ id, method, args })
    return (await this.#answer(id)) as T
  }

  /** Calls the function that a fragment was made into. */
  fragment<T = unknown>(...args: unknown[]): Promise<T> {
    return this.call<T>('fragment', ...args)
  }

  /** Works, and begins again whenever the worker was killed, as a supervisor does. */
  work(environment: NodeJS.ProcessEnv = {}): void {
    this.#isWorking = true
    this.#working = this.#supervise(environment)
  }

  /** Works until the worker is killed. */
  async workUntilKilled(): Promise<void> {
    const kills = this.kills
    await this.#supervise({})
    if (this.kills === kills) throw new Error(`The worker was not killed:\n${this.output}`)
  }

  async rest(): Promise<void> {
    this.#isWorking = false
    this.#worker?.kill('SIGTERM')
    await this.#working
  }

  /** The run, once it has ended. */
  ended(runId: string): Promise<RunFacts> {
    return this.until(`the end of run "${runId}"`, async () => {
      const run = await this.call<RunFacts | null>('getRun', runId)
      return run && ENDED.includes(run.status) ? run : undefined
    })
  }

  /** What the supplied services were called with, in order. */
  async calls(name: string): Promise<unknown[][]> {
    const text = await readFile(join(this.#folder, 'tmp/calls.jsonl'), 'utf8').catch(() => '')
    const noted = text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as NotedCall)
    return noted.filter((call) => call.name === name).map(({ args }) => args)
  }

  /** Looks until there is something. */
  async until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    const since = performance.now()
    while (performance.now() - since < PATIENCE_MS) {
      const found = await look()
      if (found !== undefined) return found
      await delay(POLL_MS)
    }
    throw new Error(`Waited ${PATIENCE_MS} ms for ${what}. The workers said:\n${this.output}`)
  }

  async close(): Promise<void> {
    await this.rest()
    if (this.#remote?.connected) this.#remote.disconnect()
    if (this.#remote && this.#remote.exitCode === null) await once(this.#remote, 'exit')
  }

  async #supervise(environment: NodeJS.ProcessEnv): Promise<void> {
    do {
      const worker = this.#start('bin/console.js', ['durable:work'], environment)
      this.#worker = worker
      const [code, signal] = (await once(worker, 'close')) as [number | null, string | null]
      if (signal === 'SIGKILL') this.kills++
      else if (code !== 0 && signal !== 'SIGTERM') {
        this.output += `\nA worker has ended with ${code ?? signal}`
        return
      }
    } while (this.#isWorking)
  }

  /** The answer to a call; 0 is the message that the process is ready. */
  async #answer(id: number): Promise<unknown> {
    const remote = this.#remote!
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    // The framework sends messages of its own to whoever has started the process.
    const hear = (answer: { id?: number; value?: unknown; error?: string }) => {
      if (answer.id !== id) return
      if (answer.error === undefined) resolve(answer.value)
      else reject(new Error(answer.error))
    }
    const leave = () => reject(new Error('The process of the application has ended'))
    remote.on('message', hear).once('exit', leave)
    try {
      return await promise
    } finally {
      remote.off('message', hear).off('exit', leave)
    }
  }

  #start(script: string, args: string[] = [], environment: NodeJS.ProcessEnv = {}): ChildProcess {
    const child = fork(join(this.#folder, script), args, {
      cwd: this.#folder,
      env: { ...this.#environment, ...environment },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: ['--enable-source-maps'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text))
    return child
  }
}
