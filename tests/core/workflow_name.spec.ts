import { test } from '@japa/runner'
import { namesWorkflow } from '../../src/core/workflow_name.ts'

class Order {
  static workflow = { name: 'shop.order' }
}
class Spaced {
  static workflow = { name: 'shop order' }
}
class Plain {}

test.group('Workflow name', () => {
  for (const [title, value] of [
    ['a name', 'shop.order'],
    ['a ref', { name: 'shop.order' }],
    ['a ref with a version', { name: 'shop.order', version: '2' }],
    ['a class with a static workflow', Order],
    ['a function', () => 'shop.order'],
  ] as const) {
    test(`${title} can name a workflow`, ({ assert }) => assert.isTrue(namesWorkflow(value)))
  }

  for (const [title, value] of [
    ['an empty text', ''],
    ['a name with white space', 'shop order'],
    ['a name with an emoji', 'shop😀'],
    ['a ref without a name', {}],
    ['a ref whose name has white space', { name: 'shop order' }],
    ['a ref whose version is a number', { name: 'shop.order', version: 2 }],
    ['a class without a static workflow', Plain],
    ['a class whose name has white space', Spaced],
    ['undefined', undefined],
    ['null', null],
    ['a number', 7],
  ] as const) {
    test(`${title} cannot`, ({ assert }) => assert.isFalse(namesWorkflow(value)))
  }
})
