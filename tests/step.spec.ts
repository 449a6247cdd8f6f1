import { Container } from '@adonisjs/core/container'
import { test } from '@japa/runner'
import { Registry } from '../src/engine/registry.ts'
import { runInScope, type Scope } from '../src/engine/scope.ts'
import { adoptDeclaredSteps, type InstanceMaker } from '../src/engine/step_declarations.ts'
import { stepNameOf } from '../src/engine/step_stamp.ts'
import { defineStep, Step } from '../src/step.ts'
import type { WorkflowCtx } from '../src/types/context.ts'
import type { StepContext } from '../src/types/step.ts'
import { recordingLogger } from './support/definition_factory.ts'

const stepContext: StepContext = {
  id: 'run:1',
  attempt: 2,
  signal: new AbortController().signal,
  log: recordingLogger(),
  heartbeat() {},
}
// Nothing here asks anything of ctx: the guard looks at the kind of the scope only.
const bodyScope: Scope = { kind: 'body', ctx: {} as WorkflowCtx, fail() {}, queried() {} }

const double = defineStep('spec.double', (value: number, step) => value * step.attempt)

class Alerts {
  prefix = 'real'

  @Step({ retries: 7 })
  async page(who: string, step: StepContext) {
    return `${this.prefix} ${who} ${step.attempt}`
  }

  @Step('spec.silence')
  static silence(who: string) {
    return `silenced ${who}`
  }

  plain(who: string) {
    return who
  }
}

class FakeAlerts extends Alerts {
  override async page(who: string) {
    return `fake ${who}`
  }
}

function adopted(container = new Container<Record<never, never>>()) {
  const registry = new Registry()
  const maker: InstanceMaker = {
    make: async (target) => container.make(target as new () => object),
    resolving: (target, callback) => container.resolving(target as new () => object, callback),
  }
  const leave = adoptDeclaredSteps({ registry, maker, inDevelopment: false })
  return { registry, leave, container }
}

test.group('Step | declaration', (group) => {
  let leave = () => {}
  group.each.teardown(() => leave())

  test('a registry that adopts has the steps declared before and after', async ({ assert }) => {
    const { registry, leave: stop } = adopted()
    leave = stop
    assert.equal(await registry.step('spec.double')?.run(4, stepContext), 8)
    assert.isUndefined(registry.step('spec.late'))
    defineStep('spec.late', () => 'late')
    assert.equal(await registry.step('spec.late')?.run(undefined, stepContext), 'late')
  })

  test('a registry that left gets no further steps', ({ assert }) => {
    const { registry, leave: stop } = adopted()
    stop()
    defineStep('spec.after_leaving', () => {})
    assert.isUndefined(registry.step('spec.after_leaving'))
  })

  test('knows the file that declares it and its options', ({ assert }) => {
    const { registry, leave: stop } = adopted()
    leave = stop
    for (const name of ['spec.double', 'Alerts.page', 'spec.silence']) {
      assert.equal(registry.step(name)?.file, import.meta.filename, name)
    }
    assert.deepEqual(registry.step('Alerts.page')?.options, { retries: 7 })
  })

  test('refuses terms of its attempts that are out of range, of a function and of a method', ({
    assert,
  }) => {
    const says = /Invalid step "spec\.terms": "timeoutMs" is "5s"\. Pass a whole number/
    const timeoutMs = '5s' as never
    assert.throws(() => defineStep('spec.terms', () => {}, { timeoutMs }), says)
    assert.throws(() => {
      class Terms {
        @Step({ name: 'spec.terms', timeoutMs })
        static work() {}
      }
      return Terms
    }, says)
  })

  test('refuses a schema that is no Standard Schema, and a name with white space', ({ assert }) => {
    assert.throws(
      () => defineStep('spec.schema', () => {}, { input: { type: 'object' } as never }),
      /"input" of step "spec\.schema" is not a Standard Schema/
    )
    assert.throws(() => defineStep('two words', () => {}), /step name "two words"/)
  })
})

test.group('Step | execution', (group) => {
  let leave = () => {}
  group.each.teardown(() => leave())

  test('a method is called with input and step on what the container makes', async ({ assert }) => {
    const { registry, leave: stop } = adopted()
    leave = stop
    assert.equal(await registry.step('Alerts.page')?.run('ann', stepContext), 'real ann 2')
    assert.equal(await registry.step('spec.silence')?.run('ann', stepContext), 'silenced ann')
  })

  test('a fake swapped into the container is used', async ({ assert }) => {
    const { registry, container, leave: stop } = adopted()
    leave = stop
    container.swap(Alerts, () => new FakeAlerts())
    assert.equal(await registry.step('Alerts.page')?.run('ann', stepContext), 'fake ann')
    container.restore(Alerts)
    assert.equal(await registry.step('Alerts.page')?.run('ann', stepContext), 'real ann 2')
  })

  test('called inside a body it is refused; in a step and outside of runs it is the function', async ({
    assert,
  }) => {
    assert.throws(
      () => runInScope(bodyScope, () => Alerts.silence('ann')),
      /"spec\.silence" was called directly inside a workflow body/
    )
    await assert.rejects(() => runInScope(bodyScope, () => double(1, stepContext)), /spec\.double/)
    assert.equal(
      await runInScope({ kind: 'step', name: 'outer', fail() {} }, () => double(1, stepContext)),
      2
    )
    assert.equal(await new Alerts().page('bob', stepContext), 'real bob 2')
  })
})

test.group('Step | names', () => {
  test('a name, a defined step and a decorated method name a step', ({ assert }) => {
    assert.equal(stepNameOf('by.name'), 'by.name')
    assert.equal(stepNameOf(double), 'spec.double')
    assert.equal(double.stepName, 'spec.double')
    assert.equal(stepNameOf(new Alerts().page), 'Alerts.page')
    assert.equal(stepNameOf(Alerts.silence), 'spec.silence')
  })

  test('an override inherits the stamp when the container makes it in place of the class', async ({
    assert,
  }) => {
    class QuietAlerts extends Alerts {
      override async page() {
        return 'quiet'
      }
    }
    const { container, leave } = adopted()
    assert.throws(() => stepNameOf(new QuietAlerts().page), /not a step/)
    container.swap(Alerts, () => new QuietAlerts())
    const injected = await container.make(Alerts)
    assert.equal(stepNameOf(injected.page), 'Alerts.page')
    leave()
  })

  test('an unstamped, a bound and a wrapped function are refused with the ways out', ({
    assert,
  }) => {
    const alerts = new Alerts()
    const fixes = /@Step\(\).*defineStep\(\).*ctx\.localStep/s
    for (const [handler, found] of [
      [alerts.plain, /the function "plain"/],
      [alerts.page.bind(alerts), /the bound function "page"/],
      [(who: string) => alerts.page(who, stepContext), /a function without a name/],
    ] as const) {
      assert.throws(() => stepNameOf(handler), fixes)
      assert.throws(() => stepNameOf(handler), found)
    }
    assert.throws(() => stepNameOf(undefined as never), /a value of type undefined/)
  })
})
