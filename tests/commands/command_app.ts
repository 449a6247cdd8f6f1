import type { Kernel } from '@adonisjs/core/ace'
import type { ApplicationService } from '@adonisjs/core/types'
import type { DurableConfig } from '../../src/define_config.ts'
import type { RunStatus } from '../../src/core/run.ts'
import { internalsOf, WorkflowEngine } from '../../src/engine/engine.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { DurableWorker } from '../../src/worker/worker.ts'
import { adonisApp } from '../support/adonis_app.ts'

export interface CommandApp {
  app: ApplicationService
  ace: Kernel
  engine: WorkflowEngine
  /** What commands have printed, a line per message. */
  printed(): string
}

/** A console application on a memory store, started, whose kernel keeps what commands print. */
export async function commandApp(
  basePath: string,
  options: DurableConfig = {}
): Promise<CommandApp> {
  const app = await adonisApp(basePath, {
    environment: 'console',
    durable: options,
    store: new MemoryStore(),
  })
  await app.start(() => {})
  const ace = await app.container.make('ace')
  ace.ui.switchMode('raw')
  const messages = () => ace.ui.logger.getLogs().map(({ message }) => message)
  const engine = await app.container.make(WorkflowEngine)
  return { app, ace, engine, printed: () => messages().join('\n') }
}

/** Executes everything that is due. */
export async function work({ engine }: Pick<CommandApp, 'engine'>): Promise<void> {
  const worker = new DurableWorker({ engine })
  await worker.start()
  await worker.whenIdle()
  await worker.stop()
}

/** From now on nothing can read a run with its payloads. */
export async function refusePayloads({ engine }: Pick<CommandApp, 'engine'>): Promise<void> {
  const store = await internalsOf(engine).store()
  store.getRun = async (runId) => {
    throw new Error(`The payloads of run ${runId} were read`)
  }
}

/** Undefined: there is no such run. */
export async function statusOf(
  { engine }: Pick<CommandApp, 'engine'>,
  runId: string
): Promise<RunStatus | undefined> {
  const run = await engine.getRun(runId)
  return run?.status
}
