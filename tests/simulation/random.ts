/** A seeded source of choices: the same seed makes the same choices. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number in [0, below). */
  below(below: number): number {
    return Math.floor(this.next() * below)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(items: readonly [T, ...T[]]): T
  pick<T>(items: readonly T[]): T | undefined
  pick<T>(items: readonly T[]): T | undefined {
    return items[this.below(items.length)]
  }

  /** An item, by weights. */
  weighted<const T>(items: readonly (readonly [weight: number, item: T])[]): T {
    const total = items.reduce((sum, [weight]) => sum + weight, 0)
    let left = this.next() * total
    for (const [weight, item] of items) {
      left -= weight
      if (left < 0) return item
    }
    return items.at(-1)![1]
  }
}

/** Mixes a text into a hash. */
export function mix(hash: number, text: string): number {
  let mixed = hash
  for (let index = 0; index < text.length; index++)
    mixed = Math.imul(mixed ^ text.charCodeAt(index), 16_777_619)
  return mixed >>> 0
}
