import { test } from '@japa/runner'
import { Registry } from '../../src/engine/registry.ts'
import { stepDefinitionOf, workflowDefinitionOf } from '../support/definition_factory.ts'

test.group('Registry | workflows', () => {
  test('finds a workflow by name and version, and the function registered last by name alone', ({
    assert,
  }) => {
    const registry = new Registry()
    const first = workflowDefinitionOf({ version: '2' })
    const last = workflowDefinitionOf({ version: '1' })
    registry.registerWorkflow(first)
    registry.registerWorkflow(last)

    assert.equal(registry.workflow('echo', '2'), first)
    assert.equal(registry.workflow('echo'), last)
    assert.isUndefined(registry.workflow('echo', '3'))
    assert.isUndefined(registry.workflow('other'))
    assert.deepEqual(registry.workflows(), [first, last])
  })

  test('finds the highest version of classes by name alone, in whatever order they were met', ({
    assert,
  }) => {
    const registry = new Registry()
    for (const version of ['9', '10', '2'])
      registry.registerWorkflow(workflowDefinitionOf({ version, writtenAs: 'class' }))
    assert.equal(registry.workflow('echo')?.version, '10')
    registry.registerWorkflow(workflowDefinitionOf({ version: '11', writtenAs: 'class' }))
    assert.equal(registry.workflow('echo')?.version, '11')
  })

  test('a function goes before classes of its name', ({ assert }) => {
    const registry = new Registry()
    registry.registerWorkflow(workflowDefinitionOf({ version: '1' }))
    registry.registerWorkflow(workflowDefinitionOf({ version: '2', writtenAs: 'class' }))
    assert.equal(registry.workflow('echo')?.version, '1')
  })

  test('replaces a definition when the same file is evaluated again, without making it the latest', ({
    assert,
  }) => {
    const registry = new Registry()
    registry.registerWorkflow(workflowDefinitionOf({ version: '1', file: '/app/echo.ts' }))
    registry.registerWorkflow(workflowDefinitionOf({ version: '2', file: '/app/echo_2.ts' }))
    const again = workflowDefinitionOf({ version: '1', file: '/app/echo.ts' })
    registry.registerWorkflow(again)

    assert.equal(registry.workflow('echo', '1'), again)
    assert.equal(registry.workflow('echo')?.version, '2')
  })

  test('keeps the file of a class that is met again without one', ({ assert }) => {
    const registry = new Registry()
    const source = class {}
    registry.registerWorkflow(workflowDefinitionOf({ source, file: '/app/echo.ts' }))
    registry.registerWorkflow(workflowDefinitionOf({ source }))
    assert.equal(registry.workflow('echo')?.file, '/app/echo.ts')
  })

  test('refuses one name and version from two files, naming both', ({ assert }) => {
    const registry = new Registry()
    registry.registerWorkflow(workflowDefinitionOf({ file: '/app/a.ts' }))
    assert.throws(
      () => registry.registerWorkflow(workflowDefinitionOf({ file: '/app/b.ts' })),
      /"echo" version "1".*\/app\/a\.ts.*\/app\/b\.ts/
    )
    assert.equal(registry.workflow('echo')?.file, '/app/a.ts')
  })

  test('refuses two functions without files under one name and version', ({ assert }) => {
    const registry = new Registry()
    registry.registerWorkflow(workflowDefinitionOf())
    assert.throws(() => registry.registerWorkflow(workflowDefinitionOf()), /registered already/)
  })

  test('refuses a name that a column cannot hold', ({ assert }) => {
    const registry = new Registry()
    assert.throws(
      () => registry.registerWorkflow(workflowDefinitionOf({ name: 'two words' })),
      /workflow name "two words"/
    )
    assert.throws(
      () => registry.registerWorkflow(workflowDefinitionOf({ version: '' })),
      /workflow version/
    )
    assert.deepEqual(registry.workflows(), [])
  })

  test('tells listeners of each registration until they leave', ({ assert }) => {
    const registry = new Registry()
    let calls = 0
    const leave = registry.onChange(() => calls++)
    registry.registerWorkflow(workflowDefinitionOf())
    registry.registerStep(stepDefinitionOf())
    assert.equal(calls, 2)
    leave()
    registry.registerStep(stepDefinitionOf({ name: 'other' }))
    assert.equal(calls, 2)
  })
})

test.group('Registry | steps', () => {
  test('refuses one name from two files, naming both, and replaces it from the same file', ({
    assert,
  }) => {
    const registry = new Registry()
    registry.registerStep(stepDefinitionOf({ file: '/app/a.ts' }))
    assert.throws(
      () => registry.registerStep(stepDefinitionOf({ file: '/app/b.ts' })),
      /"echo" is defined twice: in \/app\/a\.ts and in \/app\/b\.ts/
    )
    const again = stepDefinitionOf({ file: '/app/a.ts' })
    registry.registerStep(again)
    assert.equal(registry.step('echo'), again)
    assert.deepEqual(registry.steps(), [again])
    assert.isUndefined(registry.step('other'))
  })
})
