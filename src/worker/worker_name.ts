import { hostname } from 'node:os'
import type { NameLock, Store } from '../contracts/store.ts'
import { E_WORKER_NAME_TAKEN } from '../errors.ts'

const NAMES_TRIED = 1_000

/**
 * Takes the lock on a stable name. One that was given belongs to one live process at a time, else E_WORKER_NAME_TAKEN;
 * null = the first free one of this host is taken.
 */
export async function lockWorkerName(
  store: Store,
  given: string | null
): Promise<{ name: string; lock: NameLock }> {
  if (given !== null) {
    const lock = await store.lockName(given)
    if (lock) return { name: given, lock }
    throw new E_WORKER_NAME_TAKEN([given])
  }
  const host = hostname().replaceAll(/\s/g, '-')
  for (let number = 1; number <= NAMES_TRIED; number++) {
    const name = `${host}:${number}`
    const lock = await store.lockName(name)
    if (lock) return { name, lock }
  }
  throw new E_WORKER_NAME_TAKEN([`${host}:1 to ${host}:${NAMES_TRIED}`])
}
