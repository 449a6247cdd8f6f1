import { hash128 } from './hash.ts'

/**
 * A number in [0, 1) with 53 random bits, the same at every replay. Not for secrets.
 *
 * @param seq position of the operation
 * @param draw which of the values drawn at this position, from 0
 */
export function seededRandom(runId: string, seq: number, draw: number): number {
  const [high, low] = hash128(`random ${runId} ${seq} ${draw}`)
  return ((high >>> 5) * 0x4000000 + (low >>> 6)) / 0x20000000000000
}

/** A UUID with the layout of version 4, the same at every replay. Not for secrets. Parameters as of `seededRandom`. */
export function seededUuid(runId: string, seq: number, draw: number): string {
  const [a, b, c, d] = hash128(`uuid ${runId} ${seq} ${draw}`)
  const hex = [a, (b & 0xffff0fff) | 0x4000, (c & 0x3fffffff) | 0x80000000, d]
    .map((word) => (word >>> 0).toString(16).padStart(8, '0'))
    .join('')
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join('-')
}
