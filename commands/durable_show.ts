import { args, flags } from '@adonisjs/core/ace'
import type { CommandOptions } from '@adonisjs/core/types/ace'
import { countChildren, statusesInWords } from '../src/commands/child_counts.ts'
import { DurableCommand } from '../src/commands/durable_command.ts'
import { handledInWords, type HandlerRun } from '../src/commands/handler_runs.ts'
import { byPlace, placeInParent, placeOf } from '../src/commands/operation_place.ts'
import { readableInstant, readableJson } from '../src/commands/readable.ts'
import {
  forPrograms,
  readChildren,
  readRunDetails,
  type RunDetails,
} from '../src/commands/run_details.ts'
import { waitingFor } from '../src/commands/waiting_for.ts'
import { errorLine } from '../src/core/error_line.ts'
import { claimKey, claimKeyInWords } from '../src/core/name.ts'
import { isTerminal, type RunSummary } from '../src/core/run.ts'
import type { SerializedError } from '../src/core/serialized_error.ts'
import { WorkflowEngine } from '../src/engine/engine.ts'
import type { RecordedOperation } from '../src/engine/run_history.ts'
import type { FoundWorker } from '../src/engine/worker_descriptor.ts'
import type { WorkflowRun } from '../src/engine/workflow_run.ts'

const LONGEST_ERROR = 80

/** Why an operation failed, short enough for a table. */
function errorOf({ error }: RecordedOperation): string {
  const line = error ? errorLine(error) : ''
  return line.length > LONGEST_ERROR ? `${line.slice(0, LONGEST_ERROR - 3)}...` : line
}

/** What a turn of the run does; null = it runs the body, as most do. */
function phaseInWords({ phase, status }: WorkflowRun): string | null {
  switch (phase) {
    case 'body':
      return null
    case 'unwinding':
      return isTerminal(status)
        ? 'unwound: it has undone its steps'
        : 'unwinding: it undoes its steps'
    case 'following':
      return isTerminal(status) ? 'followed its handler' : 'following its handler'
  }
}

function unservedInWords({ namespace, workflow, version }: WorkflowRun): string {
  return `no live worker that knows ${claimKeyInWords(claimKey(namespace, workflow, version))}`
}

function workerInWords({ name, pid, host }: FoundWorker): string {
  const where = [pid === null ? '' : `pid ${pid}`, host === null ? '' : `host ${host}`]
  const known = where.filter((each) => each !== '').join(', ')
  return known === '' ? name : `${name} (${known})`
}

function handlerInWords({ runId, workflow, status, errorCode, isRetired }: HandlerRun): string {
  const cause = errorCode === null ? '' : `, ${errorCode}`
  return `${runId} (${workflow}): ${status}${cause}${isRetired ? '; retried since' : ''}`
}

/** Shows one run with its history and what it waits for. Exit codes: 0 shown, 1 there is no such run. */
export default class DurableShow extends DurableCommand {
  static override commandName = 'durable:show'
  static override description = 'Show a run, its history and what it waits for'
  static override options: CommandOptions = { startApp: true }

  @args.string({ description: 'Id of the run' })
  declare runId: string

  @flags.boolean({ description: 'Also list the runs that it has started' })
  declare children?: boolean

  @flags.boolean({
    description:
      'Print JSON: { run, history, waits, childCounts, handlers, isServed, worker }, with --children also { children }',
  })
  declare json?: boolean

  override async run() {
    const engine = await this.app.container.make(WorkflowEngine)
    const details = await readRunDetails(engine, this.runId)
    const children = this.children ? await readChildren(engine, this.runId) : undefined
    if (this.json) {
      this.logger.log(readableJson({ ...forPrograms(details), children }, 2))
      return
    }
    this.#showRun(details)
    this.#showHistory(details)
    this.#showWaits(details)
    if (children) this.#showChildren(children)
  }

  #showRun({ run, handlers, isServed, worker }: RunDetails): void {
    const { parent, error, handles } = run
    this.#showFacts([
      ['run', run.id],
      ['workflow', `${run.workflow}, version ${run.version}`],
      ['status', run.status],
      ['phase', phaseInWords(run)],
      ['namespace', run.namespace],
      ['tags', run.tags.join(', ')],
      ['parent', parent && inParent(parent)],
      ['handles', handles && handledInWords(handles)],
      ...handlers.map((handler): [string, string] => ['handled by', handlerInWords(handler)]),
      ['worker', worker ? workerInWords(worker) : run.owner],
      ['served by', isServed === false ? unservedInWords(run) : null],
      ['recoveries', run.recoveryAttempts > 0 ? String(run.recoveryAttempts) : null],
      ['created', readableInstant(run.createdAt)],
      ['started', readableInstant(run.startedAt)],
      ['ended', readableInstant(run.endedAt)],
      ['deadline', readableInstant(run.deadlineAt)],
      ['input', readableJson(run.input)],
      ['output', readableJson(run.output)],
      ...(error ? this.#factsOf(error, 'error') : []),
      ['stack', error?.stack ?? null],
    ])
  }

  #factsOf(error: SerializedError, label: string): [string, string | null][] {
    return [
      [label, `${error.code ?? error.name}: ${error.message}`],
      ['child run', error.runId ?? null],
      ['details', readableJson(error.details, 2)],
      ...(error.cause ? this.#factsOf(error.cause, 'cause') : []),
    ]
  }

  /** One fact a line; what has several lines is indented. */
  #showFacts(facts: [string, string | null][]): void {
    const width = Math.max(...facts.map(([name]) => name.length)) + 2
    for (const [name, fact] of facts) {
      if (!fact) continue
      const [first = '', ...rest] = fact.split('\n')
      this.logger.log(`${name.padEnd(width)}${first}`)
      for (const line of rest) this.logger.log(`${' '.repeat(width)}${line}`)
    }
  }

  #showHistory({ history, childCounts }: RunDetails): void {
    if (history.length === 0) return
    const head = ['seq', 'operation', 'name', 'status', 'attempts', 'children', 'error', 'ended']
    const table = this.ui.table().head(head)
    const inOrder = history.toSorted((a, b) => a.generation - b.generation || byPlace(a, b))
    for (const record of inOrder) {
      const place = placeOf(record)
      const isLive = record.generation === 0
      const counts = isLive ? childCounts.get(record.seq) : undefined
      table.row([
        isLive ? place : `${place} (retired)`,
        record.kind,
        record.name,
        record.status,
        String(record.attempts),
        counts ? statusesInWords(counts) : '',
        errorOf(record),
        readableInstant(record.endedAt),
      ])
    }
    table.render()
  }

  #showWaits({ waits, childCounts }: RunDetails): void {
    if (waits.length === 0) return
    const table = this.ui.table().head(['seq', 'operation', 'waits for', 'since'])
    for (const wait of waits.toSorted(byPlace)) {
      table.row([
        placeOf(wait),
        wait.kind,
        waitingFor(wait, childCounts.get(wait.seq) ?? countChildren([])),
        readableInstant(wait.openedAt),
      ])
    }
    table.render()
  }

  #showChildren(children: RunSummary[]): void {
    if (children.length === 0) return this.logger.info('It has started no runs')
    const table = this.ui.table().head(['seq', 'index', 'run', 'workflow', 'status', 'error'])
    for (const { id, workflow, version, status, errorCode, parent } of children) {
      table.row([
        parent ? placeInParent(parent) : '',
        String(parent?.index),
        id,
        `${workflow} (${version})`,
        status,
        errorCode ?? '',
      ])
    }
    table.render()
  }
}

function inParent(parent: { runId: string; seq: number; index: number }): string {
  const { runId, seq, index } = parent
  return seq < 0
    ? `${runId}, ${placeInParent(parent)}`
    : `${runId}, operation ${seq}, index ${index}`
}
