import { Container } from '@adonisjs/core/container'
import { test } from '@japa/runner'
import { BaseWorkflow } from '../../src/base_workflow.ts'
import { workflowDefinition } from '../../src/engine/workflow_class.ts'
import { E_UNRESOLVABLE_WORKFLOW } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { WorkflowOptions } from '../../src/types/workflow.ts'
import { recordingLogger, targetEnvironment } from '../support/definition_factory.ts'

// The bodies here ask nothing of it.
const ctx = {} as WorkflowCtx

class Tariff {
  rate = 3
}

class Quote extends BaseWorkflow {
  static override workflow = { name: 'quote', version: '4', tags: ['money'] }
  static instances = 0
  // What @inject() leaves on the class.
  static containerInjections = {
    _constructor: { dependencies: [Tariff], createError: (message: string) => new Error(message) },
  }

  constructor(protected tariff: Tariff) {
    super()
    Quote.instances++
  }

  async run(_: WorkflowCtx, amount: number) {
    return amount * this.tariff.rate
  }
}
function containerMaker() {
  const container = new Container<Record<never, never>>()
  return { make: async (target: object) => container.make(target as new () => object) }
}

test.group('Workflow class | definition', () => {
  test('takes name, version and tags from the class; the version is 1 by default', ({ assert }) => {
    const definition = workflowDefinition(Quote, targetEnvironment({ origin: 'shop' }))
    assert.containSubset(definition, { name: 'quote', version: '4', tags: ['money'] })
    assert.containSubset(definition, { origin: 'shop', file: null })
    assert.equal(definition.source, Quote)

    class Plain extends BaseWorkflow {
      static override workflow = { name: 'plain' }
      async run() {}
    }
    assert.equal(workflowDefinition(Plain, targetEnvironment()).version, '1')
  })

  test('the container makes one instance for each body', async ({ assert }) => {
    const { createBody } = workflowDefinition(Quote, targetEnvironment({ maker: containerMaker() }))
    const before = Quote.instances
    const body = await createBody()
    assert.equal(await body(ctx, 5), 15)
    assert.equal(await body(ctx, 6), 18)
    await createBody()
    assert.equal(Quote.instances - before, 2)
  })

  test('what the container cannot make is E_UNRESOLVABLE_WORKFLOW with the cause', async ({
    assert,
  }) => {
    class NeedsRequest extends BaseWorkflow {
      static override workflow = { name: 'needs_request' }
      constructor(protected request: unknown) {
        super()
      }
      async run() {}
    }
    const { createBody } = workflowDefinition(
      NeedsRequest,
      targetEnvironment({ maker: containerMaker() })
    )
    const error = await createBody().catch((reason: unknown) => reason)
    assert.instanceOf(error, E_UNRESOLVABLE_WORKFLOW)
    assert.propertyVal(error, 'code', 'E_UNRESOLVABLE_WORKFLOW')
    assert.match(String(error), /"needs_request".*NeedsRequest.*no HTTP request/)
    assert.instanceOf(Reflect.get(Object(error), 'cause'), Error)
  })
})

test.group('Workflow class | static workflow', () => {
  function classWith(workflow: unknown) {
    return class Sample extends BaseWorkflow {
      static override workflow = workflow as WorkflowOptions
      async run() {}
    }
  }

  for (const { title, workflow, message } of [
    {
      title: 'an unknown key, naming the nearest',
      workflow: { name: 'a', verison: '2' },
      message: /"verison" is not a key of "static workflow"\. Did you mean "version"\?/,
    },
    {
      title: 'an unknown key that is near to none',
      workflow: { name: 'a', colour: 'red' },
      message: /"colour" is not a key.*Known are name, version, tags/,
    },
    { title: 'a missing name', workflow: { version: '2' }, message: /Sample.*no "name"/ },
    {
      title: 'a number as version',
      workflow: { name: 'a', version: 2 },
      message: /"version" is not a string. Pass one, such as/,
    },
    {
      title: 'tags that are no list',
      workflow: { name: 'a', tags: 'x' },
      message: /"tags" are not a list of strings/,
    },
    {
      title: 'an execution time that is not a duration',
      workflow: { name: 'a', executionTimeout: 'soon' },
      message: /Invalid workflow "a": "executionTimeout": Invalid duration "soon"/,
    },
    { title: 'no options at all', workflow: undefined, message: /no static "workflow"/ },
  ]) {
    test(`refuses ${title}`, ({ assert }) => {
      assert.throws(() => workflowDefinition(classWith(workflow), targetEnvironment()), message)
    })
  }

  test('refuses a class that does not extend BaseWorkflow', ({ assert }) => {
    class Loose {
      static workflow = { name: 'loose' }
      async run() {}
    }
    assert.throws(
      () => workflowDefinition(Loose, targetEnvironment()),
      /Loose.*does not extend BaseWorkflow/
    )
  })

  test('refuses a subclass that only inherits the name of its parent', ({ assert }) => {
    class Child extends classWith({ name: 'parent' }) {}
    assert.throws(
      () => workflowDefinition(Child, targetEnvironment()),
      /no static "workflow" of its own/
    )
  })
})

test.group('Workflow class | writes to the instance', () => {
  class Counter extends BaseWorkflow {
    static override workflow = { name: 'counter' }
    #secret = 1
    seen = 0

    async run(_: WorkflowCtx, input: number) {
      this.seen += input
      this.seen += input
      Reflect.set(this, 'added', input)
      return [this.seen, Reflect.get(this, 'added'), this.#secret, this instanceof Counter]
    }
  }

  test('are reported once for each property in development, and done', async ({ assert }) => {
    const logger = recordingLogger()
    const body = await workflowDefinition(
      Counter,
      targetEnvironment({ logger, inDevelopment: true })
    ).createBody()
    assert.deepEqual(await body(ctx, 2), [4, 2, 1, true])
    assert.lengthOf(logger.warnings, 2)
    assert.match(String(logger.warnings[0]), /"counter" wrote to this\.seen during a run/)
    assert.match(String(logger.warnings[1]), /this\.added/)
  })

  test('are not looked for in production', async ({ assert }) => {
    const logger = recordingLogger()
    const body = await workflowDefinition(Counter, targetEnvironment({ logger })).createBody()
    assert.deepEqual(await body(ctx, 2), [4, 2, 1, true])
    assert.isEmpty(logger.warnings)
  })
})
