import { WorkflowEngine } from '../../src/engine/engine.ts'
import type { EngineStore } from '../../src/engine/run_starter.ts'
import { Registry } from '../../src/engine/registry.ts'
import { type GivenOptions, resolveOptions } from '../../src/options.ts'
import type { RunLogger } from '../../src/types/step.ts'
import { DurableWorker } from '../../src/worker/worker.ts'

/** Warnings and errors go to the standard error of the process, where the test that started it sees them. */
const LOG: RunLogger = {
  debug: () => {},
  info: () => {},
  warn: (...args) => console.error('warn', ...args),
  error: (...args) => console.error('error', ...args),
}

/** The engine of a process that was started by a test. */
export function engineOn(store: EngineStore, options: GivenOptions = {}): WorkflowEngine {
  return new WorkflowEngine({
    registry: new Registry(),
    openStore: async () => store,
    discover: async () => {},
    maker: { make: async (target) => Reflect.construct(target as new () => object, []) as object },
    options: resolveOptions(options),
    logger: LOG,
    inDevelopment: false,
  })
}

export async function workerOf(
  engine: WorkflowEngine,
  params: { name?: string; concurrency?: number; watchdog?: boolean } = {}
): Promise<DurableWorker> {
  const worker = new DurableWorker({ engine, ...params })
  await worker.start()
  return worker
}
