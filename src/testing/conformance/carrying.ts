import assert from 'node:assert/strict'
import type { Check } from './suite.ts'
import { FAIL, record, SUSPEND, turn, waitForSignal } from './writes.ts'

const TEXTS: Record<string, string> = {
  'an escaped NUL': JSON.stringify({ v: 'a\u0000b' }),
  'escaped lone surrogates': JSON.stringify({ v: 'a\ud800b\udfffc' }),
  'emoji and combining characters': JSON.stringify({ v: '👩‍👩‍👧‍👦 e\u0301 ✅' }),
  'quotes, backslashes and SQL': JSON.stringify({ v: `'; DROP TABLE runs; -- "\\" ? $1 :x` }),
  'line separators': JSON.stringify({ v: '\u2028\u2029\r\n\t' }),
  '1 MB': JSON.stringify({ v: 'é🦉x'.repeat(150_000) }),
}

export function carryingChecks(check: Check) {
  for (const [title, text] of Object.entries(TEXTS)) {
    check(`carries ${title} through every payload unchanged (P8)`, async (db) => {
      const row = await db.running('r1', { input: text })
      const failing = await db.running('r2')
      const records = [
        record(0, { output: text }),
        record(1, { status: 'failed', output: null, error: text }),
      ]
      const opened = [{ ...waitForSignal(2, 'go'), error: text }]
      const { answers } = await db.commit(
        turn(row, { records, opened }),
        turn(failing, { end: { ...FAIL, error: text } }),
        { type: 'signal', signal: { id: 's1', token: 'go', payload: text } },
        { type: 'signal', signal: { id: 's2', token: 'go', payload: text } }
      )
      assert.equal(answers.length, 4)
      const { input, history, waits, inbox } = await db.load('r1')
      assert.ok(input === text, 'input')
      assert.ok(history[0]?.output === text, 'recorded output')
      assert.ok(history[1]?.error === text, 'recorded error')
      assert.ok(waits[0]?.error === text, 'error of a wait')
      assert.ok(inbox[0]?.kind === 'signal' && inbox[0].payload === text, 'delivered signal')
      await db.turn(row, { opened: [waitForSignal(3, 'go')], end: SUSPEND })
      const [, kept] = await db.inbox('r1')
      assert.ok(kept?.kind === 'signal' && kept.payload === text, 'kept signal')
      const [claimed] = await db.claim()
      assert.ok(claimed)
      await db.turn(claimed, { seenInbox: 2, end: { kind: 'complete', output: text } })
      assert.ok((await db.field('r1', 'output')) === text, 'output')
      assert.ok((await db.field('r2', 'error')) === text, 'error')
    })
  }
}
