import type { Write } from '../../core/change_set.ts'

/** How many waits a batch opens for each token: as many signals that are kept for it may find a receiver. */
export function openedWaits(writes: readonly Write[]): Map<string, number> {
  const opened = new Map<string, number>()
  for (const write of writes)
    for (const { token } of write.type === 'turn' ? write.opened : [])
      if (token !== null) opened.set(token, (opened.get(token) ?? 0) + 1)
  return opened
}
