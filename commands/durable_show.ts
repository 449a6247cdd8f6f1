import { args, BaseCommand, flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import type { HistoryRecord, Wait } from '../src/core/history.ts'
import { WorkflowEngine } from '../src/engine/engine.ts'
import type { WorkflowRun } from '../src/engine/workflow_run.ts'

function instant(ms: number | null): string {
  return ms === null ? '' : new Date(ms).toISOString()
}

/** What an open operation waits for, in words. */
function waitingFor({ token, target, dueAt }: Wait): string {
  if (token !== null) return `signal "${token}"${dueAt === null ? '' : ` until ${instant(dueAt)}`}`
  if (target !== null) return `run ${target}`
  return dueAt === null ? 'a wake' : instant(dueAt)
}

/** Shows one run with its history and what it waits for. Exit codes: 0 shown, 1 there is no such run. */
export default class DurableShow extends BaseCommand {
  static override commandName = 'durable:show'
  static override description = 'Show a run, its history and what it waits for'
  static override options: CommandOptions = { startApp: true }

  @args.string({ description: 'Id of the run' })
  declare runId: string

  @flags.boolean({ description: 'Print JSON: { run, history, waits }' })
  declare json?: boolean

  override async run() {
    const engine = await this.app.container.make(WorkflowEngine)
    const run = await engine.getRun(this.runId)
    const history = await engine.getHistory(this.runId)
    if (!run || !history) {
      this.logger.error(`There is no run "${this.runId}"`)
      this.exitCode = 1
      return
    }
    if (this.json) {
      const shown = { run, history: history.records, waits: history.waits }
      this.logger.log(JSON.stringify(shown, null, 2))
      return
    }
    this.#showRun(run)
    this.#showHistory(history.records)
    this.#showWaits(history.waits)
  }

  #showRun(run: WorkflowRun): void {
    const facts: [string, string | null][] = [
      ['run', run.id],
      ['workflow', `${run.workflow}, version ${run.version}`],
      ['status', run.status],
      ['namespace', run.namespace],
      ['tags', run.tags.join(', ')],
      ['parent', run.parent && `${run.parent.runId}, operation ${run.parent.seq}`],
      ['worker', run.owner],
      ['created', instant(run.createdAt)],
      ['started', instant(run.startedAt)],
      ['ended', instant(run.endedAt)],
      ['input', JSON.stringify(run.input) ?? ''],
      ['output', JSON.stringify(run.output) ?? ''],
      ['error', run.error ? `${run.error.code ?? run.error.name}: ${run.error.message}` : ''],
    ]
    const width = Math.max(...facts.map(([name]) => name.length)) + 2
    for (const [name, fact] of facts) {
      if (fact) this.logger.log(`${name.padEnd(width)}${fact}`)
    }
  }

  #showHistory(records: HistoryRecord[]): void {
    if (records.length === 0) return
    const table = this.ui.table().head(['seq', 'operation', 'name', 'status', 'attempts', 'ended'])
    for (const record of records) {
      table.row([
        record.generation === 0 ? String(record.seq) : `${record.seq} (retired)`,
        record.kind,
        record.name,
        record.status,
        String(record.attempts),
        instant(record.endedAt),
      ])
    }
    table.render()
  }

  #showWaits(waits: Wait[]): void {
    if (waits.length === 0) return
    const table = this.ui.table().head(['seq', 'operation', 'waits for', 'since'])
    for (const wait of waits) {
      table.row([String(wait.seq), wait.kind, waitingFor(wait), instant(wait.openedAt)])
    }
    table.render()
  }
}
