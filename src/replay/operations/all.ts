import type { NewChild } from '../../core/change_set.ts'
import type { ChildOutcome } from '../../core/history.ts'
import { checkOption } from '../../core/known_options.ts'
import { decode, encode } from '../../core/payload.ts'
import { encodeError, serializeError } from '../../core/serialized_error.ts'
import { isTerminal } from '../../core/run.ts'
import type { AllOptions } from '../../types/context.ts'
import type { Operation, Outcome } from '../operation.ts'
import { childError, type ChildFactory, idTaken, outcomeOfChild } from './child.ts'

interface AllParams {
  workflow: string
  count: number
  child: ChildFactory
  /** When it is over: at the first failure, or when all have ended. */
  mode: 'failFast' | 'waitAll' | 'settled'
  /** Children in flight at once. */
  concurrency: number
}

/** One child per input under one position. It starts further ones as earlier ones end. */
export function allOperation(params: AllParams): Operation {
  const { workflow, count, mode, child, concurrency } = params
  const kind = mode === 'settled' ? 'all_settled' : 'all'
  const ended = new Set<number>()
  /** Children that could not be started, by index: another run has their id. */
  const refused = new Map<number, string>()
  let failed = false
  let started = 0
  let position = 0

  const startMore = (): NewChild[] => {
    const children: NewChild[] = []
    while (started < count && started - ended.size < concurrency)
      children.push(child({ seq: position, index: started++ }))
    return children
  }
  /** Whether it is a child of this call: a run that was requeued may have others at this position. */
  const isOwn = ({ index, runId }: { index: number; runId: string }) =>
    index < count && child({ seq: position, index }).run.id === runId
  const refuse = (index: number, runId: string) => {
    refused.set(index, runId)
    ended.add(index)
    failed = true
  }
  const called = (inputs: number | null) => `${kind} "${workflow}" of ${inputs} inputs`
  const isDone = () => ended.size === count || (failed && mode === 'failFast')
  return {
    kind,
    name: workflow,
    begin(seq) {
      position = seq
      if (count === 0) return { kind: 'done', output: encode([]), children: [], signals: [] }
      return { kind: 'wait', wait: { inputs: count }, children: startMore() }
    },
    resume(wait, known) {
      position = wait.seq
      // With fewer inputs it would wait for ever, with more it would give outputs that a replay does not have.
      if (wait.inputs !== count)
        return { kind: 'mismatch', asked: called(count), recorded: called(wait.inputs) }
      const own = known.filter(isOwn)
      for (const { index, status } of own) {
        started = Math.max(started, index + 1)
        if (!isTerminal(status)) continue
        ended.add(index)
        failed ||= status !== 'completed'
      }
      const isKnown = new Set(own.map(({ index }) => index))
      for (let index = 0; index < started; index++)
        if (!isKnown.has(index)) refuse(index, child({ seq: position, index }).run.id)
      if (isDone()) return { kind: 'fetch' }
      return { kind: 'wait', wait: null, children: startMore() }
    },
    take(event) {
      if (event.type !== 'child' || event.entry.event === 'started') return { kind: 'ignored' }
      const { index, childId, event: what } = event.entry
      if (!isOwn({ index, runId: childId })) return { kind: 'ignored' }
      if (what === 'taken') refuse(index, childId)
      ended.add(index)
      failed ||= what !== 'completed'
      if (isDone()) return { kind: 'fetch' }
      return { kind: 'children', children: startMore() }
    },
    /** Worth waking for: the rest of the ends, or, while some are still to be started, half of the window. */
    needs() {
      const inFlight = started - ended.size
      return started === count ? inFlight : Math.max(1, Math.ceil(inFlight / 2))
    },
    outcomeOf: (children) => combine(params, { children: children.filter(isOwn), refused }),
    receive(outcome) {
      if (outcome.status === 'failed') throw childError(outcome.error)
      if (mode !== 'settled') return decode(outcome.output)
      const items = decode(outcome.output) as Item[]
      return items.map((item) =>
        'value' in item
          ? { status: 'fulfilled', value: item.value }
          : { status: 'rejected', reason: childError(item.error) }
      )
    },
  }
}

/** How a child ended, decoded. */
type Item = { value: unknown } | { error: string }

/** What is recorded: the outputs, the first failure by index, or one item per child. */
function combine(
  { workflow, count, mode }: AllParams,
  { children, refused }: { children: readonly ChildOutcome[]; refused: ReadonlyMap<number, string> }
): Outcome | null {
  const items = new Map<number, Item>()
  for (const [index, runId] of refused) items.set(index, itemOf(idTaken(runId), runId))
  for (const child of children) {
    const outcome = outcomeOfChild(child, workflow)
    if (outcome) items.set(child.index, itemOf(outcome, child.runId))
  }
  const inOrder = [...items].sort(([a], [b]) => a - b).map(([, item]) => item)
  const failure = inOrder.find((item) => 'error' in item)
  if (failure && mode === 'failFast') return { status: 'failed', error: failure.error }
  if (items.size < count) return null
  if (failure && mode !== 'settled') return { status: 'failed', error: failure.error }
  const output =
    mode === 'settled' ? inOrder : inOrder.map((item) => ('value' in item ? item.value : null))
  return {
    status: 'completed',
    output: encode(output, { label: 'outputs of the children', maxBytes: Infinity }),
  }
}

/** An output that cannot be read is a failure of that child. */
function itemOf(outcome: Outcome, runId: string): Item {
  if (outcome.status === 'failed') return { error: outcome.error }
  try {
    return { value: decode(outcome.output) }
  } catch (error) {
    const failure = { ...serializeError(error), runId, status: 'failed' as const }
    return { error: encodeError(failure) }
  }
}

/** Throws E_INVALID_OPTION for a value that an option of `call` does not take. */
export function checkAllOptions(call: string, { mode, concurrency }: AllOptions): void {
  const isWhole = Number.isInteger(concurrency) || concurrency === Infinity
  checkOption(call, {
    name: 'concurrency',
    value: concurrency,
    expected: 'a whole number of children, at least 1',
    isValid: isWhole && Number(concurrency) >= 1,
  })
  checkOption(call, {
    name: 'mode',
    value: mode,
    expected: '"failFast" or "waitAll"',
    isValid: mode === 'failFast' || mode === 'waitAll',
  })
}
