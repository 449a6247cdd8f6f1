/** Two sets of counts side by side, with whether they are the same. */
export function compare(ours, theirs) {
  const names = [...new Set([...Object.keys(theirs), ...Object.keys(ours)])].sort()
  const rows = names.map((name) => [name, ours[name] ?? 0, theirs[name] ?? 0])
  const isSame = rows.every(([, mine, other]) => mine === other)
  const cells = rows.map(([name, mine, other]) => [
    name,
    mine.toLocaleString('en'),
    other.toLocaleString('en'),
    mine === other ? '' : 'differs',
  ])
  return { isSame, text: layOut([['', 'import', 'separate script', ''], ...cells]) }
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
