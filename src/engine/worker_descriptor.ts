import type { Store, WorkerRow } from '../contracts/store.ts'

/** What a worker announces of itself. */
export interface WorkerDescriptor {
  /** Namespace, workflow and version of each kind of run it takes. */
  claimKeys: readonly string[]
  concurrency: number
  pid: number
  host: string
}

/** The claim keys that live workers have announced. */
export async function servedKeys(store: Pick<Store, 'now' | 'listWorkers'>): Promise<Set<string>> {
  const live = await liveWorkers(store)
  return new Set(live.flatMap(({ descriptor }) => announcedKeys(descriptor)))
}

/** A live worker, as people find it. */
export interface FoundWorker {
  name: string
  /** Null where another version of the package wrote its descriptor in a form of its own. */
  pid: number | null
  host: string | null
}

/** The live worker of an instance; null = there is none. */
export async function workerOf(
  store: Pick<Store, 'now' | 'listWorkers'>,
  instance: string
): Promise<FoundWorker | null> {
  const live = await liveWorkers(store)
  const worker = live.find((each) => each.instance === instance)
  if (!worker) return null
  const { pid, host } = Object(parsed(worker.descriptor)) as Record<string, unknown>
  return {
    name: worker.name,
    pid: typeof pid === 'number' ? pid : null,
    host: typeof host === 'string' ? host : null,
  }
}

async function liveWorkers(store: Pick<Store, 'now' | 'listWorkers'>): Promise<WorkerRow[]> {
  const [now, workers] = await Promise.all([store.now(), store.listWorkers()])
  return workers.filter(({ lost, until }) => !lost && until > now)
}

/** None where another version of the package wrote the descriptor in a form of its own. */
function announcedKeys(descriptor: string): readonly string[] {
  const announced = parsed(descriptor)
  const keys: unknown =
    typeof announced === 'object' && announced !== null
      ? Reflect.get(announced, 'claimKeys')
      : undefined
  return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : []
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
