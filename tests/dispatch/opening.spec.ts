import { test } from '@japa/runner'
import type { Transport } from '../../src/contracts/transport.ts'
import { DurableApp } from '../support/durable_app.ts'

/** A transport that cannot be opened at first, and says what is asked of it. */
function refusingOnce() {
  const asked: string[] = []
  const transport: Transport = {
    open: async () => {
      asked.push('open')
      if (asked.length === 1) throw new Error('No such queue')
    },
    send: async () => {},
    close: async () => void asked.push('close'),
  }
  return { asked, transport }
}

test.group('The transport of an engine', () => {
  test('is opened with the store, again after it was refused, and closed with the engine', async ({
    assert,
  }) => {
    const { asked, transport } = refusingOnce()
    const { engine } = new DurableApp({ transport })
    assert.deepEqual(asked, [])
    await assert.rejects(() => engine.getRun('r'), 'No such queue')
    assert.isNull(await engine.getRun('r'))
    await engine.listRuns()
    assert.deepEqual(asked, ['open', 'open'])
    await engine.stop()
    assert.deepEqual(asked, ['open', 'open', 'close'])
  })
})
