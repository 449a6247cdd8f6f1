import { LONGEST_TIMER_MS } from './core/duration.ts'
import { isName } from './core/name.ts'
import { DEFAULT_MAX_PAYLOAD_BYTES } from './core/payload.ts'
import { namesWorkflow } from './core/workflow_name.ts'
import type { LazyWorkflowTarget } from './types/workflow.ts'

/** What an option may be: the words for it, and the test. */
interface OptionKind<T> {
  expected: string
  accepts(value: unknown): value is T
}

/** One row of the table of options. */
export interface OptionRow<T = unknown> extends OptionKind<T> {
  default: T
  /** For the documentation where the default is computed or needs words. */
  shownDefault?: string
  unit: 'ms' | 'bytes' | 'runs' | ''
  meaning: string
}

export type OptionTable = Record<string, OptionRow>

function option<T>(
  kind: OptionKind<T>,
  row: Omit<OptionRow<T>, keyof OptionKind<T>>
): OptionRow<T> {
  return { ...kind, ...row }
}

function positiveInteger(expected: string): OptionKind<number> {
  return {
    expected,
    accepts: (value): value is number => Number.isSafeInteger(value) && Number(value) > 0,
  }
}

function count(expected: string): OptionKind<number> {
  return {
    expected,
    accepts: (value): value is number => Number.isSafeInteger(value) && Number(value) >= 0,
  }
}

const milliseconds: OptionKind<number> = {
  expected: `a whole number of milliseconds from 1 to ${LONGEST_TIMER_MS}`,
  accepts: (value): value is number =>
    Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= LONGEST_TIMER_MS,
}
const boolean: OptionKind<boolean> = {
  expected: 'true or false',
  accepts: (value): value is boolean => typeof value === 'boolean',
}
// Names meet the database's columns, file names and log lines, so they obey the rule for ids.
const name: OptionKind<string | null> = {
  expected: 'a name of 1 to 200 characters without white space',
  accepts: (value): value is string | null => value === null || isName(value),
}
const cap: OptionKind<number | null> = {
  expected: 'a whole number of recoveries, at least 1',
  accepts: (value): value is number | null =>
    value === null || (Number.isSafeInteger(value) && Number(value) > 0),
}
const names: OptionKind<readonly string[]> = {
  expected: 'a list of at least one name of 1 to 200 characters without white space',
  accepts: (value): value is readonly string[] =>
    Array.isArray(value) && value.length > 0 && value.every(isName),
}
const path: OptionKind<string | null> = {
  expected: 'a path, absolute or from the root of the application',
  accepts: (value): value is string | null =>
    value === null || (typeof value === 'string' && value.length > 0),
}
const workflow: OptionKind<LazyWorkflowTarget | null> = {
  expected: 'a workflow: its name, its class, a workflowRef(), or a function that returns one',
  accepts: (value): value is LazyWorkflowTarget | null => value === null || namesWorkflow(value),
}
const nonDeterminism: OptionKind<'block' | 'fail'> = {
  expected: "'block' or 'fail'",
  accepts: (value): value is 'block' | 'fail' => value === 'block' || value === 'fail',
}

/**
 * Every option of `config/durable.ts` but the store: its default, unit, meaning and what it accepts. Defaults,
 * validation, the types of the configuration and `docs/configuration.md` all come from these tables.
 */
export const OPTIONS = {
  leaseMs: option(milliseconds, {
    default: 30_000,
    unit: 'ms',
    meaning:
      'How long a worker that has stopped renewing its lease keeps its runs. It renews after each third of this time.',
  }),
  hangMs: option(milliseconds, {
    default: 90_000,
    unit: 'ms',
    meaning:
      'A worker whose event loop has not turned for this time ends its process. Longer than `leaseMs`.',
  }),
  stallMs: option(milliseconds, {
    default: 60_000,
    unit: 'ms',
    meaning:
      'A body that neither calls nor awaits anything of `ctx` for this time, or whose instance or input schema takes as long, is reported as stalled, and a step that has not returned this long after its run has left the worker is warned of.',
  }),
  reconcileMs: option(milliseconds, {
    default: 60_000,
    unit: 'ms',
    meaning:
      'A step that was sent to another process and has no `timeoutMs` is sent again when there was no sign of it for this time.',
  }),
  redispatchMax: option(count('a whole number of times, 0 for never'), {
    default: 3,
    unit: '',
    meaning: 'How often an attempt of such a step is sent again before it fails with `step_lost`.',
  }),
  drainMs: option(milliseconds, {
    default: 30_000,
    unit: 'ms',
    meaning: 'How long a worker that shuts down lets the steps in flight finish.',
  }),
  residentRuns: option(positiveInteger('a whole number of runs, at least 1'), {
    default: 1_000,
    unit: 'runs',
    meaning:
      'Suspended runs that a worker keeps in memory, so that waking them replays nothing. In development it keeps none.',
  }),
  residentBytes: option(positiveInteger('a whole number of bytes, at least 1'), {
    default: 64 * 1024 * 1024,
    unit: 'bytes',
    meaning: 'History of suspended runs that a worker keeps in memory.',
  }),
  maxPayloadBytes: option(positiveInteger('a whole number of bytes, at least 1'), {
    default: DEFAULT_MAX_PAYLOAD_BYTES,
    unit: 'bytes',
    meaning: 'Largest input, output, error or signal, as it is stored.',
  }),
  pollMs: option(milliseconds, {
    default: 1_000,
    unit: 'ms',
    meaning:
      'How often a worker with work looks for runs that other processes have made due. Its own timers are exact.',
  }),
  idlePollMs: option(milliseconds, {
    default: 15_000,
    unit: 'ms',
    meaning: 'The longest pause between two polls of an idle worker. At least `pollMs`.',
  }),
  maxRecoveryAttempts: option<number | null>(cap, {
    default: null,
    shownDefault: 'unlimited',
    unit: '',
    meaning:
      'How often a run that was lost by its worker is recovered before it ends `dead`. Set at least 3: with less, healthy runs may end `dead` with one that kills their process.',
  }),
  deadLetterWorkflow: option<LazyWorkflowTarget | null>(workflow, {
    default: null,
    shownDefault: 'none',
    unit: '',
    meaning:
      'The workflow that takes care of `dead` runs whose own workflow names no handler. By name, or as `() => import(...)`: configuration is loaded before the application.',
  }),
  namespaces: option(names, {
    default: ['default'],
    shownDefault: "['default']",
    unit: '',
    meaning: 'Namespaces whose runs the workers of this application claim.',
  }),
  origin: option(name, {
    default: null,
    shownDefault: 'none',
    unit: '',
    meaning: 'Label of this application on the runs of its workflows.',
  }),
  nonDeterminism: option<'block' | 'fail'>(nonDeterminism, {
    default: 'block',
    unit: '',
    meaning:
      'What becomes of a run whose history does not fit the code, or whose body awaited something other than an operation of `ctx`: it waits for other code, or it fails.',
  }),
  workflowsPath: option(path, {
    default: null,
    shownDefault: 'app/workflows',
    unit: '',
    meaning:
      'Where workflow classes are discovered. `directories.workflows` of `adonisrc.ts`, if there is one, is the default.',
  }),
  stepsPath: option(path, {
    default: null,
    shownDefault: 'app/steps',
    unit: '',
    meaning:
      'Where steps are discovered, for workers whose workflows do not import them. `directories.steps` of `adonisrc.ts`, if there is one, is the default.',
  }),
} satisfies OptionTable

/** Options below `worker`. */
export const WORKER_OPTIONS = {
  embedded: option(boolean, {
    default: false,
    unit: '',
    meaning: 'Runs a worker inside the web server. For development and small applications.',
  }),
  name: option(name, {
    default: null,
    shownDefault: '`<hostname>:<first free number>`',
    unit: '',
    meaning:
      'Stable name of the worker: a process that starts under it claims the runs of its predecessor at once.',
  }),
  concurrency: option(positiveInteger('a whole number of runs, at least 1'), {
    default: 50,
    unit: 'runs',
    meaning: 'Runs that a worker executes at once.',
  }),
} satisfies OptionTable
