/** Where a name that snippets use and do not declare comes from. */
export interface Supply {
  /** The module, as an application imports it. */
  from: string
  /** `default`: its default export. */
  as: 'value' | 'type' | 'default'
}

function supply(from: string, as: Supply['as'], names: readonly string[]): [string, Supply][] {
  return names.map((name) => [name, { from, as }])
}

const PACKAGE = '@adonis-agora/durable'

/** What is imported for snippets: the package's own names, and stand-ins of ours for the services of an application. */
export const SUPPLIES: ReadonlyMap<string, Supply> = new Map([
  ...supply(PACKAGE, 'value', ['BaseWorkflow', 'FatalError', 'SchemaValidationError']),
  ...supply(PACKAGE, 'value', ['defineConfig', 'defineStep', 'OnError', 'Step']),
  ...supply(PACKAGE, 'type', ['DeadLetter', 'OnErrorInput', 'WorkflowCtx']),
  ...supply('@adonis-agora/durable/services/main', 'default', ['engine']),
  ...supply('#supplied/alerting', 'value', ['alerts', 'pager', 'tickets']),
  ...supply('#supplied/poison', 'value', ['importFn', 'poison']),
  ...supply('#supplied/poison', 'type', ['PipelineInput', 'PoisonInput']),
  ...supply('#workflows/dead_letter_handlers', 'value', ['CheckoutDlqWorkflow']),
  ...supply('#supplied/lines', 'value', ['LineSchema']),
  ...supply('#supplied/lines', 'type', ['Line', 'LineResult']),
  ...supply('#supplied/line_steps', 'value', ['ingestLine', 'recordRejectedLine', 'validateLine']),
  ...supply('#supplied/provider', 'value', ['askProvider']),
  ...supply('#supplied/provider', 'type', ['ProviderInput']),
  ...supply('#workflows/schema_failure_handlers', 'value', [
    'QuarantineRun',
    'ReportBadProviderResponse',
  ]),
])

/** Types of the values that a fragment of a function gets as its parameters, in TypeScript. */
export const PARAMETERS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    deadRunId: 'string',
    originalInput: 'PoisonInput',
    line: 'Line',
    lines: 'Line[]',
    runId: 'string',
    input: 'unknown',
    newRunId: 'string | undefined',
    name: 'string',
    version: 'string',
    fn: '(ctx: WorkflowCtx, input: unknown) => Promise<unknown>',
    code: 'string | undefined',
    workflow: 'string',
    message: 'string',
    details: 'unknown',
  })
)
