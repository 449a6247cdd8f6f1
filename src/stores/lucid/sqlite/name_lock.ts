import { createHash } from 'node:crypto'
import type { NameLock } from '../../../contracts/store.ts'
import { isBusy, openLike, type SqliteHandle } from './handle.ts'

/**
 * Takes the lock on a worker name: an exclusive transaction on a small file beside the database that nothing else
 * ever opens, held until release or the death of the process. The file stays: removing it would let two processes
 * hold the same name, on two files.
 */
export function takeNameLock(
  handle: SqliteHandle,
  { databaseFile, name }: { databaseFile: string; name: string }
): NameLock | null {
  const lock = openLike(handle, `${databaseFile}.${fileSafe(name)}.lock`)
  try {
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    if (isBusy(error)) return null
    throw error
  }
  return {
    release: async () => {
      lock.close()
    },
  }
}

/** A name that had to be changed gets a hash, so that two names never share a file. */
function fileSafe(name: string): string {
  const safe = name.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, 80)
  if (safe === name) return name
  return `${safe}~${createHash('sha256').update(name).digest('hex').slice(0, 16)}`
}
