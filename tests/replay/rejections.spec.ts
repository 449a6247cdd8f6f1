import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from '@japa/runner'

const FILE = fileURLToPath(new URL('rejecting_process.ts', import.meta.url))

test.group('Rejections that nobody handles', () => {
  test('one of a body fails that run, one of a step that attempt, one of a step that is over is logged, and one of nobody ends the process as Node does', async ({
    assert,
  }) => {
    const stdio = ['ignore', 'ignore', 'pipe', 'ipc'] as const
    const child = fork(FILE, { execArgv: process.execArgv, stdio: [...stdio] })
    const shown: string[] = []
    child.stderr!.on('data', (chunk: Buffer) => shown.push(chunk.toString()))
    const exited = once(child, 'exit')
    const [told] = await Promise.race([once(child, 'message'), exited])
    assert.deepEqual(told, {
      ended: [
        ['body', 'failed', 'left alone'],
        ['operation', 'failed', 'bad'],
        ['step', 'completed', 'careful'],
        ['late', 'completed', 'careful'],
      ],
      attempts: [1, 2],
      bystander: 'completed',
      errors: ['A promise of a step was rejected after the step had ended'],
    })
    const [code] = await exited
    assert.equal(code, 1)
    assert.include(shown.join(''), 'of nobody')
    assert.notInclude(shown.join(''), 'went on')
  }).timeout(30_000)
})
