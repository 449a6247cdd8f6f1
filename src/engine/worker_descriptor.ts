import type { Store } from '../contracts/store.ts'

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
  const [now, workers] = await Promise.all([store.now(), store.listWorkers()])
  const live = workers.filter(({ lost, until }) => !lost && until > now)
  return new Set(live.flatMap(({ descriptor }) => announcedKeys(descriptor)))
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
