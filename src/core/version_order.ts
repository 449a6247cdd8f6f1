/**
 * Orders versions as people count: runs of digits by their number, everything between as text, and what is longer
 * after what it begins with. `1.9`, `1.10`, `2`, `2-beta`. Negative: `a` is before `b`; 0: neither is.
 */
export function compareVersions(a: string, b: string): number {
  const left = partsOf(a)
  const right = partsOf(b)
  for (let index = 0; index < Math.max(left.length, right.length); index++) {
    const difference = comparePart(left[index] ?? '', right[index] ?? '')
    if (difference !== 0) return difference
  }
  return 0
}

/** Texts and digits in turn: digits have no leading zeros, so that a longer one is a larger number. */
function partsOf(version: string): string[] {
  return version.split(/(\d+)/).map((part) => part.replace(/^0+(?=\d)/, ''))
}

function comparePart(a: string, b: string): number {
  const areNumbers = /^\d/.test(a) && /^\d/.test(b)
  if (areNumbers && a.length !== b.length) return a.length - b.length
  if (a === b) return 0
  return a < b ? -1 : 1
}
