import { randomUUID } from 'node:crypto'

/**
 * An id for a run that was given none: a UUID of version 7, which begins with the time. Rows of runs that start
 * together so lie together in the database's indexes, and are written with fewer pages. Nothing reads the time from it.
 */
export function newRunId(): string {
  const ms = Date.now().toString(16).padStart(12, '0')
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${randomUUID().slice(15)}`
}
