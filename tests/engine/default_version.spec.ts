import { test } from '@japa/runner'
import { BaseWorkflow } from '../../src/base_workflow.ts'
import { workflowDefinition } from '../../src/engine/workflow_class.ts'
import { targetEnvironment } from '../support/definition_factory.ts'
import { DurableApp } from '../support/durable_app.ts'

class ShipOrder extends BaseWorkflow {
  static override workflow = { name: 'ship', version: '10' }
  async run() {}
}
class ShipOrderV9 extends BaseWorkflow {
  static override workflow = { name: 'ship', version: '9' }
  async run() {}
}

async function versionOf(app: DurableApp, runId: string) {
  const run = await app.engine.getRun(runId)
  return run?.version
}

test.group('Default version', () => {
  test('of classes is the highest in all files, also when only an older class has been used', async ({
    assert,
    cleanup,
  }) => {
    const app: DurableApp = new DurableApp({
      discover: async () => {
        for (const target of [ShipOrder, ShipOrderV9])
          app.registry.registerWorkflow(workflowDefinition(target, targetEnvironment()))
      },
    })
    cleanup(() => app.close())
    await app.engine.start(ShipOrderV9, undefined, 'ship-1')
    await app.engine.start('ship', undefined, 'ship-2')
    assert.equal(await versionOf(app, 'ship-1'), '9')
    assert.equal(await versionOf(app, 'ship-2'), '10')
  })

  test('of functions is the one registered last, and no file is looked for', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp({
      discover: async () => assert.fail('files were looked for'),
    })
    cleanup(() => app.close())
    for (const version of ['2', '1']) app.engine.register('ship', version, async () => {})
    await app.engine.start('ship', undefined, 'ship-1')
    assert.equal(await versionOf(app, 'ship-1'), '1')
  })
})
