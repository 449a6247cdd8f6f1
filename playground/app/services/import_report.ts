import Airport from '#models/airport'
import ImportAirports, { type ImportCounts } from '#workflows/import_airports'
import type { WorkflowEngine } from '@adonis-agora/durable'
import type { RunRow, StrandedRun } from '@adonis-agora/durable/types'

export interface ImportReport {
  status: RunRow['status']
  /** What the import came to: its own counts, and what is in the table of airports. */
  counts: Record<string, number>
  /** Child runs by status. */
  runs: Record<string, number>
  stranded: StrandedRun[]
  /** Operations that a run's history holds more than once, as `<run> <step>`. */
  recordedTwice: string[]
  /** Rows that were written more than once: a worker died between the write and its record. */
  rowsWrittenAgain: number
}

async function tableCounts(): Promise<Record<string, number>> {
  const rows = await Airport.query()
    .select('region')
    .count('* as airports')
    .sum('elevation_metres as metres')
    .groupBy('region')
  const counts: Record<string, number> = { 'airports': 0, 'metres of elevation': 0 }
  for (const { region, $extras } of rows) {
    counts[`airports in ${region}`] = $extras.airports
    counts['airports']! += $extras.airports
    counts['metres of elevation']! += $extras.metres
  }
  return counts
}

async function childRuns(engine: WorkflowEngine, parentId: string): Promise<RunRow[]> {
  const runs: RunRow[] = []
  let after: string | undefined
  do {
    const page = await engine.listRuns({ parentId, limit: 1_000, after })
    runs.push(...page.runs)
    after = page.next ?? undefined
  } while (after !== undefined)
  return runs
}

/** A line's run calls each step once, so that a name that comes twice was recorded twice. */
async function recordedTwice(engine: WorkflowEngine, runs: RunRow[]): Promise<string[]> {
  const found: string[] = []
  for (const { id } of runs) {
    const history = await engine.getHistory(id)
    const names = history?.records.map(({ name }) => name) ?? []
    found.push(
      ...names.filter((name, n) => names.indexOf(name) !== n).map((name) => `${id} ${name}`)
    )
  }
  return found
}

/** What an import has done, read from its run, its children and the table of airports. Null: there is no such run. */
export async function importReport(
  engine: WorkflowEngine,
  runId: string
): Promise<ImportReport | null> {
  const run = await engine.getRun(runId)
  if (!run || run.workflow !== ImportAirports.workflow.name) return null
  const children = await childRuns(engine, runId)
  const runs: Record<string, number> = {}
  for (const { status } of children) runs[status] = (runs[status] ?? 0) + 1
  const output = run.output as ImportCounts | undefined
  const invalid = Object.entries(output?.invalid ?? {})
  const again = await Airport.query().where('writes', '>', 1)
  return {
    status: run.status,
    counts: {
      ...(output && { 'lines': output.lines, 'failed lines': output.failed }),
      ...Object.fromEntries(invalid.map(([field, lines]) => [`failed for ${field}`, lines])),
      ...(await tableCounts()),
    },
    runs,
    stranded: await engine.findStranded(),
    recordedTwice: await recordedTwice(engine, children),
    rowsWrittenAgain: again.length,
  }
}
