const SHOWN = 5

/** What is wrong with an import, in words; nothing is when the list is empty. */
export function problemsOf({ report, table, isKilled, endings }) {
  const { status, counts, runs, recordedTwice, stranded } = report
  const expectedRuns = [
    ['completed', counts['airports'] ?? 0],
    ['failed', counts['failed lines'] ?? 0],
  ]
  const all = Object.values(runs).reduce((sum, number) => sum + number, 0)
  const few = (list) => JSON.stringify(list.slice(0, SHOWN))
  const checks = [
    [isKilled, 'the import ended before a worker was killed'],
    [status === 'completed', `the import is ${status}`],
    [table.isSame, 'the counts differ'],
    [all === counts['lines'], `${all} runs for ${counts['lines']} lines`],
    ...expectedRuns.map(([name, number]) => [
      (runs[name] ?? 0) === number,
      `${runs[name] ?? 0} runs are ${name}, and ${number} lines`,
    ]),
    [recordedTwice.length === 0, `recorded twice: ${few(recordedTwice)}`],
    [stranded.length === 0, `stranded: ${few(stranded)}`],
    ...endings.map(({ name, code }) => [code === 0, `${name} did not stop cleanly: ${code}`]),
  ]
  return checks.filter(([holds]) => !holds).map(([, problem]) => problem)
}
