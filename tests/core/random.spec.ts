import { test } from '@japa/runner'
import { hash128 } from '../../src/core/hash.ts'
import { seededRandom, seededUuid } from '../../src/core/random.ts'

const HASHES: [text: string, words: number[]][] = [
  ['', [0, 0, 0, 0]],
  ['a', [86207882, 1151290123, 1836206141, 978143084]],
  ['order-1', [1278978315, 2211924399, 704641037, 3405417846]],
  ['abcdefgh', [1815443029, 2381879457, 2808947469, 1108635924]],
  ['abcdefghi', [3547927819, 1019532806, 2499853541, 2020737167]],
  ['\u{1F600}ä', [3999089617, 4266894026, 4051231933, 919703118]],
]

const DRAWS: [runId: string, seq: number, draw: number, random: number, uuid: string][] = [
  ['order-1', 0, 0, 0.3564199124747012, 'b184dec1-6904-47d6-b356-46fc23d2a615'],
  ['order-1', 0, 1, 0.9413704439083305, 'be714697-3b75-409b-b836-9db8cd890438'],
  ['order-1', 1, 0, 0.31637219630865265, 'ad833bf5-231f-4df2-9d9c-39e3f2682ca8'],
  ['order-2', 0, 0, 0.8258545236787732, '29cc9208-df34-4fa8-a773-1f774b36cd6c'],
  ['x', 4_294_967_296, 7, 0.9246689476145671, '16b948e9-0e22-429c-a060-c03dc2b7b17f'],
]

/** How far the counts are from even, in units that are about 1 for each degree of freedom. */
function chiSquared(counts: readonly number[], expected: number): number {
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
}

test.group('hash128', () => {
  for (const [text, words] of HASHES) {
    test(`the hash of ${JSON.stringify(text)} never changes`, ({ assert }) => {
      assert.deepEqual(hash128(text), words as [number, number, number, number])
    })
  }

  test('changing one bit of the text changes about half of the bits', ({ assert }) => {
    let changed = 0
    for (let index = 0; index < 1000; index++) {
      const before = hash128(`run-${index} 5 ${index}`)
      const after = hash128(`run-${index} 4 ${index}`)
      for (const [at, word] of before.entries()) {
        changed += ((word ^ (after[at] ?? 0)) >>> 0).toString(2).replaceAll('0', '').length
      }
    }
    assert.closeTo(changed / 128_000, 0.5, 0.01)
  })
})

test.group('determined values', () => {
  for (const [runId, seq, draw, random, uuid] of DRAWS) {
    test(`draw ${draw} at position ${seq} of ${runId} never changes`, ({ assert }) => {
      assert.equal(seededRandom(runId, seq, draw), random)
      assert.equal(seededUuid(runId, seq, draw), uuid)
    }).tags(['P3'])
  }

  test('numbers are spread evenly over [0, 1), whichever of run, position and draw varies', ({
    assert,
  }) => {
    const draws = [
      (index: number) => seededRandom(`run-${index}`, 0, 0),
      (index: number) => seededRandom('run', index, 0),
      (index: number) => seededRandom('run', 0, index),
    ]
    for (const draw of draws) {
      const counts = new Array<number>(100).fill(0)
      let sum = 0
      for (let index = 0; index < 20_000; index++) {
        const value = draw(index)
        assert.isTrue(value >= 0 && value < 1)
        const bucket = Math.floor(value * 100)
        counts[bucket] = (counts[bucket] ?? 0) + 1
        sum += value
      }
      // 99 degrees of freedom: above 149 is one in a thousand.
      assert.isBelow(chiSquared(counts, 200), 149)
      assert.closeTo(sum / 20_000, 0.5, 0.01)
    }
  })

  test('the low bits of the numbers are random too', ({ assert }) => {
    let odd = 0
    for (let index = 0; index < 10_000; index++)
      odd += (seededRandom('run', index, 0) * 2 ** 53) % 2
    assert.closeTo(odd / 10_000, 0.5, 0.02)
  })

  test('neighbouring numbers do not depend on each other', ({ assert }) => {
    const counts = new Array<number>(16).fill(0)
    for (let index = 0; index < 16_000; index++) {
      const pair =
        Math.floor(seededRandom('r', index, 0) * 4) * 4 +
        Math.floor(seededRandom('r', index + 1, 0) * 4)
      counts[pair] = (counts[pair] ?? 0) + 1
    }
    // 15 degrees of freedom: above 37.7 is one in a thousand.
    assert.isBelow(chiSquared(counts, 1000), 37.7)
  })

  test('UUIDs have the layout of version 4 and are all different', ({ assert }) => {
    const seen = new Set<string>()
    const variants = new Set<string>()
    for (let run = 0; run < 100; run++) {
      for (let seq = 0; seq < 100; seq++) {
        const uuid = seededUuid(`run-${run}`, seq, 0)
        assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        seen.add(uuid)
        variants.add(uuid.charAt(19))
      }
    }
    assert.equal(seen.size, 10_000)
    assert.equal(variants.size, 4)
  })

  test('ids and positions that read alike when joined draw differently', ({ assert }) => {
    assert.notEqual(seededUuid('run1', 2, 3), seededUuid('run', 12, 3))
    assert.notEqual(seededUuid('run', 1, 23), seededUuid('run', 12, 3))
  })
})
