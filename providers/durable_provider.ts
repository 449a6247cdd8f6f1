import { configProvider } from '@adonisjs/core'
import type { ApplicationService, LoggerService } from '@adonisjs/core/types'
import { defineConfig, type ResolvedConfig } from '../src/define_config.ts'
import { useEngine } from '../src/engine/current_engine.ts'
import { Discovery } from '../src/engine/discovery.ts'
import { WorkflowEngine } from '../src/engine/engine.ts'
import { Registry } from '../src/engine/registry.ts'
import { noteQuery } from '../src/engine/scope.ts'
import type { InstanceMaker } from '../src/engine/step_declarations.ts'
import { E_INVALID_CONFIG } from '../src/errors.ts'
import { watchQueries } from '../src/stores/lucid/query_watch.ts'
import { excludeFromSchemaGeneration } from '../src/stores/lucid/schema_exclusion.ts'
import { isUnderDevelopmentServer } from '../src/worker/development_server.ts'
import { EmbeddedWorker } from '../src/worker/embedded_worker.ts'
import { Loop } from '../src/worker/loop.ts'
import { RunLog } from '../src/worker/run_log.ts'
import { hasTerminationBegun } from '../src/worker/termination.ts'
import { isWatchdogWanted } from '../src/worker/watchdog_wanted.ts'
import { DurableWorker } from '../src/worker/worker.ts'
import { describeWorker } from '../src/worker/worker_description.ts'

declare module '@adonisjs/core/types' {
  interface ContainerBindings {
    'durable': WorkflowEngine
    'durable.config': ResolvedConfig
  }
}

/** How often the files of workflows and steps are looked at in development. */
const FILE_WATCH_MS = 1_000

/**
 * Binds the engine and, in a web server that is configured so, runs a worker beside it. Building the engine opens
 * nothing and reads nothing: the store and the files of workflows are opened when something is first asked of it.
 */
export default class DurableProvider {
  #engine: WorkflowEngine | undefined
  #worker: EmbeddedWorker | undefined
  #discovery: Discovery | undefined
  #fileWatch: Loop | undefined
  #forgetEngine = () => {}
  #stopWatchingQueries = () => {}

  constructor(protected app: ApplicationService) {}

  register() {
    this.app.container.singleton('durable.config', () => this.#config())
    this.app.container.singleton(WorkflowEngine, () => this.#buildEngine())
    this.app.container.alias('durable', WorkflowEngine)
    this.#forgetEngine = useEngine(() => this.app.container.make(WorkflowEngine))
    excludeFromSchemaGeneration(this.app.config.get('database', null))
    // A hook, since providers shut down in reverse order: the database must outlive what drains into it.
    this.app.terminating(() => this.#stop())
  }

  /** Starts the embedded worker. Only here: before, the application may not be able to run a workflow yet. */
  async ready() {
    if (this.app.getEnvironment() !== 'web' || this.app.getMode() === 'warmup' || this.app.inTest)
      return
    const { options } = await this.app.container.make('durable.config')
    if (!options.worker.embedded || hasTerminationBegun(this.app)) return
    const engine = await this.app.container.make(WorkflowEngine)
    const logger = await this.app.container.make('logger')
    // From here on the terminating hook finds the worker; one that ran before has found none.
    if (hasTerminationBegun(this.app)) return
    // During development lines are printed for people: a fact each would take a line of its own.
    new RunLog({ log: logger, fields: !this.app.inDev }).followTrouble(engine)
    this.#worker = new EmbeddedWorker({
      start: async () => {
        const worker = new DurableWorker({
          engine,
          watchdog: isWatchdogWanted(this.app),
          isCounted: !isUnderDevelopmentServer(),
          onStarted: (started) => logger.info(describeWorker(started)),
        })
        await worker.start()
        if (this.app.inDev) this.#watchFiles(logger)
        return worker
      },
      onError: (err) =>
        logger.error(
          { err },
          'The embedded worker could not start: this server runs no workflows until it can. Trying again'
        ),
    })
    // Ctrl+C drains like SIGTERM; a second one finds no listener and ends the process.
    this.app.listenOnce('SIGINT', () => void this.app.terminate())
    await this.#worker.start()
  }

  /** A workflow whose file is new may be started by another process: nothing here would ask for it. */
  #watchFiles(logger: LoggerService) {
    this.#fileWatch = new Loop({
      pass: async () => {
        await this.#discovery?.discoverChanges()
        return FILE_WATCH_MS
      },
      retryMs: FILE_WATCH_MS,
      onError: (err) => logger.error({ err }, 'Files of workflows or steps were not loaded'),
    })
    this.#fileWatch.start()
  }

  async #config(): Promise<ResolvedConfig> {
    const given: unknown = this.app.config.get('durable', defineConfig())
    const config = await configProvider.resolve<ResolvedConfig>(this.app, given)
    if (!config)
      throw new E_INVALID_CONFIG(['default export', 'expected the result of defineConfig()'])
    return config
  }

  async #buildEngine(): Promise<WorkflowEngine> {
    const { options, store } = await this.app.container.make('durable.config')
    const logger: LoggerService = await this.app.container.make('logger')
    const { container } = this.app
    const maker: InstanceMaker = {
      make: (target) => container.make(target),
      resolving: (target, callback) => container.resolving(target, callback),
    }
    this.#stopWatchingQueries = await watchQueries(this.app, noteQuery)
    const registry = new Registry()
    const discovery = (this.#discovery = new Discovery({
      registry,
      maker,
      logger,
      origin: options.origin,
      inDevelopment: this.app.inDev,
      workflowsPath: this.app.makePath(options.workflowsPath ?? this.#directory('workflows')),
      stepsPath: this.app.makePath(options.stepsPath ?? this.#directory('steps')),
    }))
    this.#engine = new WorkflowEngine({
      registry,
      openStore: async () => (await store.resolver(this.app))(),
      discover: () => discovery.discover(),
      maker,
      options,
      deadLetterWorkflow: options.deadLetterWorkflow ?? undefined,
      logger,
      inDevelopment: this.app.inDev,
    })
    return this.#engine
  }

  #directory(name: 'workflows' | 'steps'): string {
    return this.app.rcFile.directories[name] ?? `app/${name}`
  }

  async #stop(): Promise<void> {
    for (const part of [this.#worker, this.#fileWatch, this.#engine]) {
      try {
        await part?.stop()
      } catch (err) {
        const logger = await this.app.container.make('logger')
        logger.error({ err }, 'A part of durable could not be stopped')
      }
    }
    this.#stopWatchingQueries()
    this.#forgetEngine()
  }
}
