import { defineStep } from '../../src/step.ts'

/** What the steps were called with, and what they answer with. */
export const UNDO = {
  calls: [] as { step: string; output: unknown; id: string; attempt: number }[],
  /** Throws when the call is to fail. */
  answer: (_call: { step: string; attempt: number }): unknown => undefined,
  reset() {
    this.calls = []
    this.answer = () => undefined
  },
}

function undoing(step: string) {
  return async (output: unknown, { id, attempt }: { id: string; attempt: number }) => {
    UNDO.calls.push({ step, output, id, attempt })
    return UNDO.answer({ step, attempt })
  }
}

/** Retried at once. */
export const undoSoon = defineStep('failing.undo_soon', undoing('soon'), {
  retries: 2,
  backoffMs: 1,
})
/** Retried after a minute. */
export const undoLater = defineStep('failing.undo_later', undoing('later'), {
  retries: 2,
  backoffMs: 60_000,
})
