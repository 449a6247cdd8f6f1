import { setTimeout } from 'node:timers'
import type { RunLogger } from '../types/step.ts'

const RETRY_MS = 500

/**
 * Reads from the store, again and again while that fails; undefined once nobody wants it any more. The first failure is
 * logged, as `what` could not be read.
 */
export async function readPersistently<T>(
  read: () => Promise<T>,
  params: { what: string; isWanted: () => boolean; log: RunLogger }
): Promise<T | undefined> {
  const { what, isWanted, log } = params
  for (let failures = 0; isWanted(); failures++) {
    try {
      return await read()
    } catch (err) {
      if (failures === 0) log.warn({ err }, `${what} could not be read; trying again`)
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
  return undefined
}
