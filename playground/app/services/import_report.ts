import Airport from '#models/airport'
import RejectedLine from '#models/rejected_line'
import Ticket from '#models/ticket'
import ImportAirports, { type ImportCounts } from '#workflows/import_airports'
import RejectLine from '#workflows/reject_line'
import type { WorkflowEngine } from '@adonis-agora/durable'
import type { OutputOf, RunQuery, RunSummary, StrandedRun } from '@adonis-agora/durable/types'

/** Histories that are read at once. */
const TOGETHER = 100

type Counts = Record<string, number>

export interface ImportReport {
  status: RunSummary['status']
  /** What the run of the import counted from the results of its lines; empty while it has not completed. */
  results: Counts
  /** What is in the tables of airports and of rejected lines. */
  tables: Counts
  /** Runs of lines by status. */
  runs: Counts
  /** The runs of lines that were handed to the workflow that records what is not valid. */
  handed: number
  tickets: { runId: string; retryRunId: string }[]
  stranded: StrandedRun[]
  /** Operations that a run's history holds more than once, as `<run> <step>`. */
  recordedTwice: string[]
  /** Rows that were written more than once: a worker died between the write and its record. */
  rowsWrittenAgain: number
}

function add(counts: Counts, name: string, amount = 1): void {
  counts[name] = (counts[name] ?? 0) + amount
}

function resultCounts({ lines, imported, rejected, invalid }: ImportCounts): Counts {
  const byField = Object.entries(invalid).map(([field, n]) => [`rejected for ${field}`, n] as const)
  return { lines, airports: imported, rejected, ...Object.fromEntries(byField) }
}

async function tableCounts(): Promise<Counts> {
  const counts: Counts = { 'airports': 0, 'rejected': 0, 'metres of elevation': 0 }
  const regions = await Airport.query()
    .select('region')
    .count('* as airports')
    .sum('elevation_metres as metres')
    .groupBy('region')
  for (const { region, $extras } of regions) {
    const airports = Number($extras.airports)
    add(counts, `airports in ${region}`, airports)
    add(counts, 'airports', airports)
    add(counts, 'metres of elevation', Number($extras.metres))
  }
  for (const { fields } of await RejectedLine.query().select('fields')) {
    add(counts, 'rejected')
    for (const field of fields) add(counts, `rejected for ${field}`)
  }
  return counts
}

async function runsOf(engine: WorkflowEngine, query: RunQuery): Promise<RunSummary[]> {
  const runs: RunSummary[] = []
  let after: string | undefined
  do {
    const page = await engine.listRuns({ ...query, limit: 1_000, after })
    runs.push(...page.runs)
    after = page.next ?? undefined
  } while (after !== undefined)
  return runs
}

/** The run of a line, and that of its handler, call each step once: a name that comes twice was recorded twice. */
async function recordedTwice(engine: WorkflowEngine, runs: RunSummary[]): Promise<string[]> {
  const found: string[] = []
  for (let from = 0; from < runs.length; from += TOGETHER) {
    const part = runs.slice(from, from + TOGETHER)
    const histories = await Promise.all(part.map(({ id }) => engine.getHistory(id)))
    for (const [n, history] of histories.entries()) {
      const names = history?.records.map(({ name }) => name) ?? []
      const again = names.filter((name, index) => names.indexOf(name) !== index)
      found.push(...again.map((name) => `${part[n]?.id} ${name}`))
    }
  }
  return found
}

/** What an import has done, read from its runs and the tables. Null: there is no such run. */
export async function importReport(
  engine: WorkflowEngine,
  runId: string
): Promise<ImportReport | null> {
  const run = await engine.getRun<OutputOf<typeof ImportAirports>>(runId)
  if (!run || run.workflow !== ImportAirports.workflow.name) return null
  const lines = await runsOf(engine, { parentId: runId })
  const handlers = await runsOf(engine, { workflow: RejectLine.workflow.name })
  const isOfLine = new Set(lines.map(({ id }) => id))
  const handed = handlers.filter(({ handles }) => handles && isOfLine.has(handles.runId))
  const runs: Counts = {}
  for (const { status } of lines) add(runs, status)
  const again = await Promise.all(
    [Airport, RejectedLine].map((model) => model.query().where('writes', '>', 1))
  )
  const tickets = await Ticket.all()
  return {
    status: run.status,
    results: run.output ? resultCounts(run.output) : {},
    tables: await tableCounts(),
    runs,
    handed: handed.length,
    tickets: tickets.map((ticket) => ({ runId: ticket.runId, retryRunId: ticket.retryRunId })),
    stranded: await engine.findStranded(),
    recordedTwice: await recordedTwice(engine, [...lines, ...handed]),
    rowsWrittenAgain: again.flat().length,
  }
}
