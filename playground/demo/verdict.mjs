const SHOWN = 5

/**
 * What is wrong with an import, in words; nothing is when the list is empty.
 *
 * @param params.ticket the ticket that made somebody repair the step
 * @param params.before the status of the import then
 * @param params.watch what was seen on the way
 * @param params.endings of the workers that were stopped
 */
export function problemsOf({ report, expected, table, ticket, before, watch, endings }) {
  const { status, runs, handed, tickets, recordedTwice, stranded } = report
  const few = (list) => JSON.stringify(list.slice(0, SHOWN))
  const checks = [
    [watch.isKilled, 'the import ended before a worker was killed'],
    [before === 'failed', `the import was ${before} when a line's run was dead`],
    [watch.deaths > 0, 'no worker died of the poison line'],
    [
      tickets.length === 1 && tickets[0].runId === ticket?.dead,
      `tickets: ${few(tickets)}, expected one for ${ticket?.dead}`,
    ],
    [status === 'completed', `the import is ${status}`],
    [table.isSame, 'the counts differ'],
    [
      runs['completed'] === expected['lines'] && Object.keys(runs).length === 1,
      `${expected['lines']} lines, and runs ${JSON.stringify(runs)}`,
    ],
    [handed === expected['rejected'], `${handed} lines were handed to the workflow that rejects`],
    [recordedTwice.length === 0, `recorded twice: ${few(recordedTwice)}`],
    [stranded.length === 0, `stranded: ${few(stranded)}`],
    ...endings.map(({ name, code }) => [code === 0, `${name} did not stop cleanly: ${code}`]),
  ]
  return checks.filter(([holds]) => !holds).map(([, problem]) => problem)
}
