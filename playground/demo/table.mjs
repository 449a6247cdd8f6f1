/**
 * Counts of several sources side by side, with whether they agree.
 *
 * @param sources each `{ title, counts, leavesOut }`: what it does not count by the names that match, 0 where it has none
 */
export function compare(sources) {
  const names = [...new Set(sources.flatMap(({ counts }) => Object.keys(counts)))].sort()
  const rows = names.map((name) => {
    const values = sources.map(({ counts, leavesOut }) =>
      leavesOut?.test(name) ? null : (counts[name] ?? 0)
    )
    const isAgreed = new Set(values.filter((value) => value !== null)).size === 1
    return { name, values, isAgreed }
  })
  const cells = rows.map(({ name, values, isAgreed }) => [
    name,
    ...values.map((value) => value?.toLocaleString('en') ?? ''),
    isAgreed ? '' : 'differs',
  ])
  return {
    isSame: rows.every(({ isAgreed }) => isAgreed),
    text: layOut([['', ...sources.map(({ title }) => title), ''], ...cells]),
  }
}

function layOut(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)))
  return rows
    .map(([name, ...values]) => {
      const padded = values.map((value, n) => value.padStart(widths[n + 1]))
      return `  ${name.padEnd(widths[0])}  ${padded.join('  ')}`.trimEnd()
    })
    .join('\n')
}
