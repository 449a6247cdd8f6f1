/** A rule of the replay loop, and how to take it out: texts of source files, each of which occurs there once. */
export interface Rule {
  name: string
  file: string
  replace: readonly (readonly [text: string, by: string])[]
  /** What shows that it is missing: random bodies diverge, or a test of its own fails. */
  shownBy: readonly ('bodies' | 'tests')[]
}

const TURN = 'src/replay/turn.ts'
const RECORDED = 'src/replay/recorded.ts'
const OPERATION = 'src/replay/operation.ts'
const CONTEXT = 'src/replay/context.ts'
const ARRIVALS = 'src/replay/arrivals.ts'
const WANTS = 'src/replay/wants.ts'
const DISPATCH = 'src/core/dispatch.ts'
const RUNNER = 'src/engine/turn_runner.ts'
const MACROTASK = 'src/engine/macrotask.ts'

const WINDOW = `setImmediate(open)
  setImmediate(close)`

export const RULES: readonly Rule[] = [
  {
    name: 'one delivery per window',
    file: TURN,
    replace: [
      ['return this.#record(call, resolved.outcome)', 'this.#record(call, resolved.outcome)'],
    ],
    shownBy: ['bodies', 'tests'],
  },
  {
    name: 'a window stays open until every microtask has run',
    file: MACROTASK,
    replace: [[WINDOW, 'setImmediate(() => { open(); void Promise.resolve().then(close) })']],
    shownBy: ['bodies'],
  },
  {
    name: 'a window is closed by the immediate queued with the one that opened it',
    file: MACROTASK,
    replace: [[WINDOW, 'setImmediate(() => { open(); setImmediate(() => setTimeout(close, 5)) })']],
    shownBy: ['tests'],
  },
  {
    name: '`after` is compared',
    file: RECORDED,
    replace: [[' && identity.after === call.after', '']],
    shownBy: ['tests'],
  },
  {
    name: '`after` is recorded',
    file: TURN,
    replace: [['name, after: this.#delivered }', 'name, after: 0 }']],
    shownBy: ['bodies', 'tests'],
  },
  {
    name: 'delivery by ordinal',
    file: RECORDED,
    replace: [['a.ordinal! - b.ordinal!', 'a.seq - b.seq']],
    shownBy: ['bodies', 'tests'],
  },
  {
    name: 'what is recorded is delivered before anything new',
    file: TURN,
    replace: [
      [
        'if (record) this.#replay(record)',
        'if (record && this.#arrivals.isEmpty) this.#replay(record)',
      ],
    ],
    shownBy: ['bodies'],
  },
  {
    name: 'no live operation before the recorded history has been delivered',
    file: TURN,
    replace: [
      ['if (this.#recorded.next) return this.#schedule()\n', ''],
      [
        'if (this.#arrivals.isReady) this.#schedule()',
        'if (this.#recorded.next || this.#arrivals.isReady) this.#schedule()\n    if (this.#recorded.next) this.#params.onSettled()',
      ],
      ['if (this.isBusy) return null', 'if (this.isBusy && !this.#recorded.next) return null'],
      ['if (this.#running > 0 ||', 'if (this.#recorded.next || this.#running > 0 ||'],
    ],
    shownBy: ['tests'],
  },
  {
    name: 'a mismatch settles nothing',
    file: TURN,
    replace: [
      [
        `this.#differ(recorded.mismatch)
      return promise`,
        `reject(new Error('non_determinism'))
      return promise`,
      ],
    ],
    shownBy: ['tests'],
  },
  {
    name: 'a turn that faults writes nothing',
    file: TURN,
    replace: [['...this.#wants.takeNothing(), state:', '...this.#wants.take(), state:']],
    shownBy: ['tests'],
  },
  {
    name: 'a recorded operation that is not called is a mismatch',
    file: TURN,
    replace: [['if (missed) return this.#differ(missed)', 'void missed']],
    shownBy: ['tests'],
  },
  {
    name: 'a body that ends before its history is a mismatch',
    file: TURN,
    replace: [['const mismatch = this.#recorded.unreached()', 'const mismatch = undefined']],
    shownBy: ['tests'],
  },
  {
    name: 'an operation outside a window is a foreign await',
    file: TURN,
    replace: [['if (!this.#isOpen) {', 'if (!this.#isOpen && this.#seq < 0) {']],
    shownBy: ['tests'],
  },
  {
    name: 'an operation after the end does nothing',
    file: TURN,
    replace: [
      [
        `if (this.isOver) return null
    if (!this.#isOpen) {`,
        'if (!this.#isOpen) {',
      ],
    ],
    shownBy: ['tests'],
  },
  {
    name: 'the promise of an operation notes that somebody listens',
    file: OPERATION,
    replace: [['this.listened = true', '']],
    shownBy: ['bodies', 'tests'],
  },
  {
    name: 'keeping a rejection from being unhandled is not listening',
    file: OPERATION,
    replace: [
      ['Promise.prototype.then.call(promise, undefined, () => {})', 'promise.catch(() => {})'],
    ],
    shownBy: ['tests'],
  },
  {
    name: 'what is derived from the promise of an operation is an ordinary promise',
    file: OPERATION,
    replace: [['return Promise\n', 'return OperationPromise\n']],
    shownBy: ['tests'],
  },
  {
    name: 'random values are derived from run and position',
    file: CONTEXT,
    replace: [
      [
        'seededRandom(this.runId, seq, draw)',
        'Math.random() + 0 * (seq + draw + seededRandom("", 0, 0))',
      ],
    ],
    shownBy: ['bodies', 'tests'],
  },
  {
    name: 'values drawn at one position differ',
    file: TURN,
    replace: [['draw: this.#draws++ }', 'draw: this.#draws }']],
    shownBy: ['tests'],
  },
  {
    name: 'the time is recorded',
    file: TURN,
    replace: [["if (recorded?.state === 'ended') return recorded.record.output!", '']],
    shownBy: ['bodies'],
  },
  {
    name: 'a failure of an earlier attempt does not count',
    file: DISPATCH,
    replace: [['(attempt === dispatch.attempt && isInFlight(wait))', 'isInFlight(wait)']],
    shownBy: ['bodies'],
  },
  {
    name: 'what follows from the end of a body is concluded once',
    file: TURN,
    replace: [[' || this.#fault || this.#isConcluded) return', ' || this.#fault) return']],
    shownBy: ['bodies', 'tests'],
  },
  {
    name: 'a step is sent when its wait is durable, and not before',
    file: RUNNER,
    replace: [
      [
        "const answer = await this.#writer.write(wants, { kind: 'continue' })",
        `this.#params.dispatcher?.send(this.row.id, wants.orders, this.#steps.undone)
      const answer = await this.#writer.write({ ...wants }, { kind: 'continue' })`,
      ],
      [
        'this.#params.dispatcher?.send(this.row.id, wants.orders, this.#steps.undone)\n    turn.committed',
        'turn.committed',
      ],
    ],
    shownBy: ['bodies'],
  },
  {
    name: 'what was to be sent for a step that is over is not sent',
    file: WANTS,
    replace: [['this.#orders.delete(call.seq)\n    this.#wants', 'this.#wants']],
    shownBy: ['tests'],
  },
  {
    name: 'a due time is forgotten when its wait is replaced',
    file: ARRIVALS,
    replace: [["if (event.type === 'due' && !call.isDue) return { kind: 'none' }", '']],
    shownBy: ['tests'],
  },
]

/** The source without the rule. Throws when one of its texts does not occur exactly once. */
export function withoutRule(rule: Rule, source: string): string {
  return rule.replace.reduce((text, [from, by]) => {
    const parts = text.split(from)
    if (parts.length !== 2)
      throw new Error(`"${rule.name}": ${parts.length - 1} places in ${rule.file} read: ${from}`)
    return parts.join(by)
  }, source)
}
