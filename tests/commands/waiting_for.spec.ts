import { test } from '@japa/runner'
import { countChildren } from '../../src/commands/child_counts.ts'
import { waitingFor } from '../../src/commands/waiting_for.ts'
import type { OpenOperation } from '../../src/engine/run_history.ts'

const wait: Omit<OpenOperation, 'kind'> = {
  ...{ seq: 3, name: 'x', after: 0, openedAt: 0, attempts: 0 },
  ...{ token: null, target: null, inputs: null, dueAt: null, dispatch: null },
}
const noon = Date.UTC(2030, 0, 1, 12)
const none = countChildren([])
const sent = { generation: 1, attempt: 3, id: 'd', redispatches: 0, silenceMs: null }
const failure = { name: 'Error', message: 'no\nanswer', code: 'timeout' }

test.group('Waiting for, in words', () => {
  for (const { open, children = none, words } of [
    { open: { ...wait, kind: 'signal', token: 'paid' }, words: 'signal "paid"' },
    {
      open: { ...wait, kind: 'signal', token: 'paid', dueAt: noon },
      words: 'signal "paid" until 2030-01-01T12:00:00.000Z',
    },
    { open: { ...wait, kind: 'sleep', dueAt: noon }, words: 'time until 2030-01-01T12:00:00.000Z' },
    {
      open: { ...wait, kind: 'child', target: 'r1' },
      children: countChildren([{ index: 0, runId: 'r1', status: 'running' }]),
      words: 'run r1, 1 running',
    },
    {
      open: { ...wait, kind: 'all', inputs: 3 },
      children: countChildren([
        { index: 0, runId: 'a', status: 'completed' },
        { index: 1, runId: 'b', status: 'dead' },
        { index: 2, runId: 'c', status: 'suspended' },
      ]),
      words: 'children: 2 of 3 started have ended (1 suspended, 1 completed, 1 dead)',
    },
    { open: { ...wait, kind: 'start_child', target: 'r1' }, words: 'the start of run r1' },
    {
      open: { ...wait, kind: 'local_step', attempts: 2, error: failure, dueAt: noon },
      words: 'attempt 3 at 2030-01-01T12:00:00.000Z, after timeout: no answer',
    },
    {
      open: { ...wait, kind: 'step', attempts: 2, error: failure, dueAt: noon, dispatch: sent },
      words: 'an answer to attempt 3 until 2030-01-01T12:00:00.000Z',
    },
    {
      open: { ...wait, kind: 'step', attempts: 3, error: failure, dueAt: noon, dispatch: sent },
      words: 'attempt 4 at 2030-01-01T12:00:00.000Z, after timeout: no answer',
    },
    {
      open: { ...wait, kind: 'compensation', name: 'charge', attempts: 1, error: failure },
      words: 'to undo charge: attempt 2, after timeout: no answer',
    },
    {
      open: { ...wait, kind: 'handoff', target: 'r1.onError.0' },
      words: 'its handler run r1.onError.0',
    },
  ] satisfies {
    open: OpenOperation
    children?: ReturnType<typeof countChildren>
    words: string
  }[]) {
    test(words, ({ assert }) => {
      assert.equal(waitingFor(open, children), words)
    })
  }
})
