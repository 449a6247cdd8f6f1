import { seededRandom } from '../../src/core/random.ts'

const CHARACTERS: [string, ...string[]] = [
  'a',
  'B',
  '0',
  '.',
  '\\',
  '"',
  '\u0000',
  '\ud800',
  '\udc00',
  '😀',
  'ä',
  ' ',
  '\u2028',
  '[',
  '__',
]
const KEYS: [string, ...string[]] = [
  '__proto__',
  'constructor',
  'prototype',
  'toJSON',
  'length',
  'then',
  '',
  '0',
  '01',
  'a.b',
  'v',
  'm',
]
const NUMBERS: [number, ...number[]] = [
  0,
  -0,
  1,
  -1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  1e300,
  2 ** 53,
]

/** Draws values that can be stored, of every kind and nested in each other. */
class Generator {
  readonly #seed: number
  #draw = 0

  constructor(seed: number) {
    this.#seed = seed
  }

  #below(limit: number): number {
    return Math.floor(seededRandom('arbitrary', this.#seed, this.#draw++) * limit)
  }

  #one<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.#below(choices.length)] ?? choices[0]
  }

  #many<T>(make: () => T): T[] {
    return Array.from({ length: this.#below(5) }, make)
  }

  #text(): string {
    return this.#many(() => this.#one(CHARACTERS)).join('')
  }

  #key(): string {
    return this.#below(3) === 0 ? this.#one(KEYS) : this.#text()
  }

  #primitive(): unknown {
    return this.#one<() => unknown>([
      () => null,
      () => undefined,
      () => this.#below(2) === 0,
      () => this.#text(),
      () => this.#one(NUMBERS),
      () => this.#below(1000),
      () => BigInt(this.#below(3)) ** 70n,
    ])()
  }

  #error(depth: number): Error {
    const make = this.#one([Error, TypeError, RangeError])
    const error =
      this.#below(2) === 0
        ? new make(this.#text())
        : new make(this.#text(), { cause: this.value(depth) })
    return this.#below(2) === 0
      ? error
      : Object.assign(error, { code: this.value(depth), constructor: 1 })
  }

  #entries(depth: number): [string, unknown][] {
    return this.#many(() => [this.#key(), this.value(depth)])
  }

  value(depth: number): unknown {
    if (depth === 0 || this.#below(3) === 0) return this.#primitive()
    const below = depth - 1
    return this.#one<() => unknown>([
      () => Object.fromEntries(this.#entries(below)),
      () => Object.fromEntries(this.#entries(below)),
      () =>
        Object.create(
          null,
          Object.getOwnPropertyDescriptors(Object.fromEntries(this.#entries(below)))
        ) as unknown,
      () => this.#many(() => this.value(below)),
      () => new Map(this.#many(() => [this.#primitive(), this.value(below)])),
      () => new Set(this.#many(() => this.value(below))),
      () => new Date(this.#below(1e13)),
      () => new RegExp(this.#one(['a/b', '', '[\\/.]', '\\d+$']), this.#one(['', 'g', 'iu'])),
      () => Buffer.from(this.#text()),
      () => new Float64Array(this.#many(() => this.#one(NUMBERS))),
      () => this.#error(below),
    ])()
  }
}

/** The value that belongs to a seed: the same at every call. */
export function arbitraryValue(seed: number): unknown {
  return new Generator(seed).value(5)
}
