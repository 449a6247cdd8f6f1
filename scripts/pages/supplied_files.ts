/** What is called is noted in a file, which outlives the process: each line `{ name, args }`. */
const calls = `import { appendFileSync } from 'node:fs'

export function called(name: string, ...args: unknown[]): void {
  appendFileSync(new URL('../tmp/calls.jsonl', import.meta.url), JSON.stringify({ name, args }) + '\\n')
}
`

const poison = `import { defineStep, type WorkflowCtx } from '@adonis-agora/durable'
import { called } from '#supplied/calls'

export interface PoisonInput {
  file: string
  fixed?: boolean
}
export type PipelineInput = PoisonInput

/** Kills its process, unless the input was corrected. */
export const poison = defineStep('supplied.poison', async (input: PoisonInput, step) => {
  called('poison', step.id.split(':')[0], input)
  if (!input.fixed) process.kill(process.pid, 'SIGKILL')
  return { read: input.file }
})

export async function importFn(ctx: WorkflowCtx, input: PoisonInput) {
  return ctx.step(poison, input)
}
`

const alerting = `import { called } from '#supplied/calls'

export const alerts = {
  async page(alert: { runId: string; error?: string | undefined }) {
    called('alerts.page', alert)
  },
}
export const tickets = {
  async create(ticket: { payload: unknown }) {
    called('tickets.create', ticket)
    return { id: 'ticket-1' }
  },
}
export const pager = {
  async alert(topic: string, facts: { runId: string; workflow: string }) {
    called('pager.alert', topic, facts)
  },
}
`

const alertService = `import { Step } from '@adonis-agora/durable'
import { called } from '#supplied/calls'

export default class AlertService {
  @Step()
  async page(alert: { runId: string; workflow: string }) {
    called('alerts.page', alert)
  }
}
`

const ticketService = `import { Step } from '@adonis-agora/durable'
import { called } from '#supplied/calls'

export default class TicketService {
  readonly #prefix = 'ticket'

  @Step()
  async create(ticket: { title: string; payload: unknown }) {
    called('tickets.create', ticket)
    return { id: this.#prefix + '-1' }
  }
}
`

/** Handlers that only note what they get, by class. */
function handlers(params: { classes: Record<string, string>; input: string }): string {
  const classes = Object.entries(params.classes).map(
    ([className, name]) => `
export class ${className} extends BaseWorkflow {
  static override workflow = { name: '${name}' }

  async run(ctx: WorkflowCtx, input: ${params.input}) {
    await ctx.localStep('note', () => called('handler', '${name}', input))
    return { handledBy: '${name}' }
  }
}
`
  )
  return `import { BaseWorkflow, type ${params.input}, type WorkflowCtx } from '@adonis-agora/durable'
import { called } from '#supplied/calls'
${classes.join('')}`
}

const lines = `import { called } from '#supplied/calls'

export interface Line {
  n: number
  amount: number
}
export interface LineResult {
  ok: number
  failed: number
}
interface Issue {
  path: string[]
  message: string
}
type Parsed = { success: true; data: Line } | { success: false; error: { issues: Issue[] } }

export const LineSchema = {
  safeParse(line: Line): Parsed {
    called('LineSchema.safeParse', line)
    if (line.amount >= 0) return { success: true, data: line }
    return { success: false, error: { issues: [{ path: ['amount'], message: 'is negative' }] } }
  },
}
`

/** Steps of a workflow of lines; a bad line fails with the snippet's own error, which exists once the module is evaluated. */
const lineSteps = `import { defineStep } from '@adonis-agora/durable'
import { called } from '#supplied/calls'
import type { Line } from '#supplied/lines'
import { InvalidLine } from '#supplied/snippet_errors'

export const validateLine = defineStep('supplied.validate', async (line: Line) => {
  called('validateLine', line)
  if (line.amount < 0) throw new InvalidLine('the amount is ' + line.amount)
})
export const ingestLine = defineStep('supplied.ingest', async (line: Line) => {
  called('ingestLine', line)
})
export const recordRejectedLine = defineStep(
  'supplied.reject',
  async (rejected: { line: Line; error: string }) => {
    called('recordRejectedLine', rejected)
  }
)
`

const provider = `import { defineStep } from '@adonis-agora/durable'
import { called } from '#supplied/calls'

export interface ProviderInput {
  ask: string
  answer: string
}

/** Standard Schemas: the answer, or the question, must not be empty. */
function nonEmpty(key: 'ask' | 'answer') {
  return {
    '~standard': {
      version: 1 as const,
      vendor: 'supplied',
      validate: (value: unknown) =>
        (value as ProviderInput)[key] === '' ? { issues: [{ message: key + ' is empty' }] } : { value },
    },
  }
}

export const askProvider = defineStep(
  'supplied.provider',
  async (input: ProviderInput) => {
    called('askProvider', input)
    return { ask: input.ask, answer: input.answer }
  },
  { input: nonEmpty('ask'), output: nonEmpty('answer'), retries: 0 }
)
`

/** Calls the fragment of a step, and notes the details of the failure that comes of it. */
const detailsWorkflows = `import { BaseWorkflow, defineStep, type OnErrorInput, type WorkflowCtx } from '@adonis-agora/durable'
import { called } from '#supplied/calls'
import type { Line } from '#supplied/lines'
import { InvalidLine, fragment } from '#supplied/snippet_errors'

const checkLine = defineStep('supplied.check', async (line: Line) => {
  await fragment({ line })
})

export class DetailsHandler extends BaseWorkflow {
  static override workflow = { name: 'details-handler' }

  async run(ctx: WorkflowCtx, failure: OnErrorInput<Line>) {
    await ctx.localStep('note', () => called('handler', 'details-handler', failure))
    return 'rejected'
  }
}

export class CheckedLine extends BaseWorkflow {
  static override workflow = {
    name: 'checked-line',
    onError: [{ code: InvalidLine, workflow: DetailsHandler }],
  }

  async run(ctx: WorkflowCtx, line: Line) {
    await ctx.step(checkLine, line)
    return 'accepted'
  }
}
`

/** Fails as often as it is told to; its handler is misnamed. */
const faultyWorkflows = `import { BaseWorkflow, FatalError, type WorkflowCtx } from '@adonis-agora/durable'

export class Faulty extends BaseWorkflow {
  static override workflow = { name: 'faulty', tags: ['supplied'] }

  async run(ctx: WorkflowCtx, input: { failing: boolean; code?: string }) {
    await ctx.localStep('check', () => {
      if (input.failing && !process.env.REPAIRED) throw new FatalError('not today', 'not_today')
    })
    return 'done'
  }
}

export class Misrouted extends BaseWorkflow {
  static override workflow = { name: 'misrouted', onError: [{ code: 'lost', workflow: 'nobody' }] }

  async run() {}
}
`

/** Registers, by the call of a snippet, a workflow with a route for one code and one with a route for all. */
const registrations = `import { FatalError, type WorkflowCtx } from '@adonis-agora/durable'
import { called } from '#supplied/calls'
import { fragment } from '#fragments/fragment'

async function fn(ctx: WorkflowCtx, input: unknown): Promise<unknown> {
  await ctx.localStep('fail', () => {
    called('fn', ctx.workflow, input)
    throw new FatalError('no', 'not_today')
  })
  return null
}

const workflow = 'quarantine'
await fragment({ name: 'by-code', version: '1', fn, code: 'not_today', workflow })
await fragment({ name: 'catch-all', version: '1', fn, code: undefined, workflow })
`

const DEAD_LETTER_HANDLERS = {
  GlobalDlqWorkflow: 'global-dlq',
  ImportDlqWorkflow: 'import-dlq',
  PipelineDlqWorkflow: 'pipeline-dlq',
  CheckoutDlqWorkflow: 'checkout-dlq',
}
const SCHEMA_FAILURE_HANDLERS = {
  ReportBadProviderResponse: 'report-bad-response',
  QuarantineRun: 'quarantine',
}

/** Names of workflows by the class that stands for them in a snippet. */
export const WORKFLOW_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({ ...DEAD_LETTER_HANDLERS, ...SCHEMA_FAILURE_HANDLERS })
)

/** The stand-ins for what snippets use, as files of an application. */
export const suppliedFiles: Readonly<Record<string, string>> = {
  'supplied/calls.ts': calls,
  'supplied/poison.ts': poison,
  'supplied/alerting.ts': alerting,
  'supplied/lines.ts': lines,
  'supplied/provider.ts': provider,
  'app/services/alert_service.ts': alertService,
  'app/services/ticket_service.ts': ticketService,
}

/** Further files, by what a scenario is about. */
export const scenarioFiles = {
  deaths: {
    'app/workflows/dead_letter_handlers.ts': handlers({
      classes: DEAD_LETTER_HANDLERS,
      input: 'DeadLetter',
    }),
  },
  lines: { 'supplied/line_steps.ts': lineSteps },
  details: { 'app/workflows/details.ts': detailsWorkflows },
  schemas: {
    'app/workflows/schema_failure_handlers.ts': handlers({
      classes: SCHEMA_FAILURE_HANDLERS,
      input: 'OnErrorInput',
    }),
  },
  registrations: { 'start/durable.ts': registrations },
  faults: { 'app/workflows/faulty.ts': faultyWorkflows },
} satisfies Record<string, Record<string, string>>

/** Workflows that kill their processes, by name. */
export function poisonWorkflows(names: readonly string[]): string {
  const classes = names.map(
    (name, index) => `
export class Poison${index} extends BaseWorkflow {
  static override workflow = { name: '${name}', tags: ['supplied'] }

  async run(ctx: WorkflowCtx, input: PoisonInput) {
    return ctx.step(poison, input)
  }
}
`
  )
  return `import { BaseWorkflow, type WorkflowCtx } from '@adonis-agora/durable'
import { poison, type PoisonInput } from '#supplied/poison'
${classes.join('')}`
}
