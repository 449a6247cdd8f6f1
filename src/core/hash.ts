const C1 = 0x239b961b
const C2 = 0xab0e9789
const C3 = 0x38b34ae5
const C4 = 0xa1e38b93

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits))
}

function finish(value: number): number {
  let mixed = value ^ (value >>> 16)
  mixed = Math.imul(mixed, 0x85ebca6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed, 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

/**
 * MurmurHash3 (x86, 128 bits, seed 0) of the UTF-16 code units of `text`, least significant byte first, padded with
 * zeros to whole blocks. Four unsigned 32-bit words. Not for secrets. Recorded values depend on it: it never changes.
 */
export function hash128(text: string): [number, number, number, number] {
  let h1 = 0
  let h2 = 0
  let h3 = 0
  let h4 = 0

  const word = (index: number) =>
    (index < text.length ? text.charCodeAt(index) : 0) |
    ((index + 1 < text.length ? text.charCodeAt(index + 1) : 0) << 16)

  for (let index = 0; index < text.length; index += 8) {
    h1 ^= Math.imul(rotate(Math.imul(word(index), C1), 15), C2)
    h1 = (Math.imul(rotate(h1, 19) + h2, 5) + 0x561ccd1b) | 0
    h2 ^= Math.imul(rotate(Math.imul(word(index + 2), C2), 16), C3)
    h2 = (Math.imul(rotate(h2, 17) + h3, 5) + 0x0bcaa747) | 0
    h3 ^= Math.imul(rotate(Math.imul(word(index + 4), C3), 17), C4)
    h3 = (Math.imul(rotate(h3, 15) + h4, 5) + 0x96cd1c35) | 0
    h4 ^= Math.imul(rotate(Math.imul(word(index + 6), C4), 18), C1)
    h4 = (Math.imul(rotate(h4, 13) + h1, 5) + 0x32ac3b17) | 0
  }

  const length = text.length * 2
  h1 ^= length
  h2 ^= length
  h3 ^= length
  h4 ^= length

  h1 = (h1 + h2 + h3 + h4) | 0
  h2 = (h2 + h1) | 0
  h3 = (h3 + h1) | 0
  h4 = (h4 + h1) | 0
  h1 = finish(h1)
  h2 = finish(h2)
  h3 = finish(h3)
  h4 = finish(h4)
  h1 = (h1 + h2 + h3 + h4) | 0
  h2 = (h2 + h1) | 0
  h3 = (h3 + h1) | 0
  h4 = (h4 + h1) | 0

  return [h1 >>> 0, h2 >>> 0, h3 >>> 0, h4 >>> 0]
}

/** The same as 32 hexadecimal characters. */
export function hashOf(text: string): string {
  return hash128(text)
    .map((word) => word.toString(16).padStart(8, '0'))
    .join('')
}
