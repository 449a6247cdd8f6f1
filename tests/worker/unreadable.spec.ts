import { test } from '@japa/runner'
import { turn } from '../../src/testing/conformance/writes.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { Cluster } from './cluster.ts'
import { endOf } from './run_facts.ts'
import { firstStep, storedRun } from '../support/stored_run.ts'

const GOOD = Array.from({ length: 20 }, (_, index) => `good-${index}`)

onEach(KINDS, (kind) =>
  test.group(`Claimed runs that cannot be read (${kind})`, (group) => {
    let cluster: Cluster
    group.each.setup(async () => {
      cluster = await Cluster.on(kind)
      return () => cluster.close()
    })

    test('a run whose input cannot be decoded fails alone with an error of its own, and those claimed with it complete (case 3, P8)', async ({
      assert,
    }) => {
      const { app, engine } = await cluster.application({})
      engine.register('echo', '1', (ctx, input) => ctx.localStep('echo', () => input))
      const starts = [...GOOD, 'bad'].map((id) =>
        storedRun('echo', { id, input: id === 'bad' ? '{"v":' : '{"v":1}' })
      )
      const store = await cluster.store()
      await store.commit(starts)
      await app.work()
      for (const id of GOOD) {
        const { status } = await endOf(engine, id)
        assert.equal(status, 'completed')
      }
      const bad = await engine.waitForRun('bad')
      assert.equal(bad.status, 'failed')
      assert.equal(bad.error?.code, 'E_UNREADABLE_PAYLOAD')
      assert.equal(bad.input, '{"v":')
      assert.deepEqual(await engine.findStranded(), [])
    })

    test('a run whose recorded output cannot be decoded fails alone (case 3)', async ({
      assert,
    }) => {
      const { app, engine } = await cluster.application({})
      engine.register('echo', '1', (ctx, input) => ctx.localStep('echo', () => input))
      const store = await cluster.store()
      const ids = [...GOOD, 'bad']
      await store.commit(ids.map((id) => storedRun('echo', { id, leaseTo: 'gone' })))
      await store.commit(
        ids.map((id) => {
          const record = firstStep('echo', id === 'bad' ? 'broken' : '{"v":1}')
          return turn({ id, token: 1 }, { records: [record], end: { kind: 'release' } })
        })
      )
      await app.work()
      for (const id of GOOD) {
        const { output } = await endOf(engine, id)
        assert.equal(output, 1)
      }
      const bad = await engine.waitForRun('bad')
      assert.equal(bad.status, 'failed')
      assert.equal(bad.error?.code, 'E_UNREADABLE_PAYLOAD')
    })
  })
)
