import { test } from '@japa/runner'
import { newRunId } from '../../src/engine/run_id.ts'
import { DurableApp } from '../support/durable_app.ts'

test.group('Run id', () => {
  test('is a UUID of version 7, and never the same twice', ({ assert }) => {
    const ids = Array.from({ length: 1_000 }, () => newRunId())
    for (const id of ids)
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.equal(new Set(ids).size, ids.length)
  })

  test('begins with the time, so that later runs come after earlier ones', ({ assert }) => {
    const before = Date.now()
    const id = newRunId()
    const time = Number.parseInt(id.replace('-', '').slice(0, 12), 16)
    assert.isTrue(time >= before && time <= Date.now())
  })

  test('is given to a run that was started without one', async ({ assert }) => {
    const app = new DurableApp()
    const echo = app.engine.register('echo', '1', (_, input: number) => input)
    const { runId } = await app.engine.start(echo, 1)
    assert.equal(runId.at(14), '7')
    await app.close()
  })
})
