import { test } from '@japa/runner'
import { BaseWorkflow, workflowRef } from '../../src/base_workflow.ts'
import { resolveWorkflowTarget } from '../../src/engine/workflow_target.ts'
import { targetEnvironment, workflowDefinitionOf } from '../support/definition_factory.ts'

class Order extends BaseWorkflow {
  static override workflow = { name: 'order', version: '3' }
  async run() {}
}

test.group('Workflow target', () => {
  for (const { title, target, expected } of [
    { title: 'a name', target: 'order', expected: { name: 'order' } },
    { title: 'a class', target: Order, expected: { name: 'order', version: '3' } },
    {
      title: 'a ref',
      target: workflowRef('order', '2'),
      expected: { name: 'order', version: '2' },
    },
    { title: 'a function returning a name', target: () => 'order', expected: { name: 'order' } },
    {
      title: 'a function returning a class',
      target: () => Order,
      expected: { name: 'order', version: '3' },
    },
    {
      title: 'a function returning a module',
      target: async () => ({ default: Order }),
      expected: { name: 'order', version: '3' },
    },
  ]) {
    test(`${title} is resolved to name and version`, async ({ assert }) => {
      const { name, version } = await resolveWorkflowTarget(target, targetEnvironment())
      assert.deepEqual(version === undefined ? { name } : { name, version }, expected)
    })
  }

  test('a ref without a version leaves the version open', async ({ assert }) => {
    const resolved = await resolveWorkflowTarget(workflowRef('order'), targetEnvironment())
    assert.equal(resolved.name, 'order')
    assert.isUndefined(resolved.version)
  })

  test('registers a class it meets for the first time, once', async ({ assert }) => {
    const environment = targetEnvironment()
    await resolveWorkflowTarget(Order, environment)
    const registered = environment.registry.workflow('order', '3')
    assert.equal(registered?.source, Order)
    await resolveWorkflowTarget(Order, environment)
    assert.equal(environment.registry.workflow('order', '3'), registered)
  })

  test('refuses a class whose name belongs to another one', async ({ assert }) => {
    const environment = targetEnvironment()
    const taken = workflowDefinitionOf({ name: 'order', version: '3', file: '/app/order.ts' })
    environment.registry.registerWorkflow(taken)
    await assert.rejects(
      () => resolveWorkflowTarget(Order, environment),
      /"order" version "3".*\/app\/order\.ts/
    )
  })

  test('in development the reloaded class of a discovered file is the discovered workflow', async ({
    assert,
  }) => {
    const environment = targetEnvironment({ inDevelopment: true })
    const discovered = workflowDefinitionOf({ name: 'order', version: '3', file: '/app/order.ts' })
    environment.registry.registerWorkflow(discovered)
    await resolveWorkflowTarget(Order, environment)
    assert.equal(environment.registry.workflow('order', '3'), discovered)
  })

  test('a class that is not there yet is E_CIRCULAR_WORKFLOW_IMPORT, with the file and what to name instead', async ({
    assert,
  }) => {
    const readTooEarly = () => {
      const target = () => Later
      const found = target()
      class Later extends Order {}
      return found
    }
    await assert.rejects(
      () => resolveWorkflowTarget(readTooEarly, targetEnvironment()),
      /workflow_target\.spec\.ts and the file of "Later" import each other.*workflowRef/
    )
  })

  test('an error of a lazy target is passed on as it is', async ({ assert }) => {
    const broken = () => {
      throw new Error('cannot reach it')
    }
    await assert.rejects(
      () => resolveWorkflowTarget(broken, targetEnvironment()),
      'cannot reach it'
    )
  })

  for (const { title, target, problem } of [
    {
      title: 'extends nothing',
      target: class Plain {},
      problem: 'Invalid workflow "Plain": the class does not extend BaseWorkflow',
    },
    {
      title: 'extends nothing and has a run',
      target: class Plain {
        run() {}
      },
      problem: 'Invalid workflow "Plain": the class does not extend BaseWorkflow',
    },
    {
      title: 'has no run',
      target: class Idle extends (BaseWorkflow as unknown as new () => object) {
        static workflow = { name: 'idle' }
      },
      problem: 'Invalid workflow "Idle": the class has no method "run"',
    },
  ]) {
    test(`refuses a class that ${title}, given as it is or by a function`, async ({ assert }) => {
      for (const given of [target, () => target, async () => ({ default: target })]) {
        const refused: unknown = await resolveWorkflowTarget(
          given as never,
          targetEnvironment()
        ).catch((reason: unknown) => reason)
        assert.propertyVal(refused, 'code', 'E_INVALID_WORKFLOW')
        assert.include(String(refused), problem)
      }
    })
  }

  test('refuses what names no workflow', async ({ assert }) => {
    for (const target of [undefined, 4, {}, () => null]) {
      await assert.rejects(
        () => resolveWorkflowTarget(target as never, targetEnvironment()),
        /it does not name a workflow. Pass its name, its class/
      )
    }
  })
})
