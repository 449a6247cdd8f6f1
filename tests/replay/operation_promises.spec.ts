import { test } from '@japa/runner'
import { OperationPromise } from '../../src/replay/operation.ts'
import { PlayedTurn } from './played_turn.ts'

test.group('Promises of operations and drawn values', () => {
  test('what is derived from the promise of an operation is an ordinary promise', async ({
    assert,
  }) => {
    const { promise } = OperationPromise.withResolvers<void>()
    assert.isFalse(promise.then(() => {}) instanceof OperationPromise)
    assert.isFalse(promise.catch(() => {}) instanceof OperationPromise)
    assert.isFalse(promise.finally(() => {}) instanceof OperationPromise)
  })

  test('a forgotten await is found, though the package itself keeps its rejection from being unhandled', async ({
    assert,
  }) => {
    const played = new PlayedTurn((ctx) => {
      void ctx.localStep('forgotten', () => 1)
    })
    const { state } = await played.settled()
    assert.deepEqual(state, {
      kind: 'ended',
      outcome: { status: 'not_awaited', seq: 0, name: 'forgotten' },
    })
  })

  test('an operation that was listened to counts as awaited', async ({ assert }) => {
    const played = new PlayedTurn((ctx) => {
      void ctx.localStep('listened', () => 1).then(() => {})
    })
    const { state } = await played.settled()
    assert.deepInclude(state, { kind: 'ended', outcome: { status: 'completed', value: undefined } })
  })

  test('values drawn without an operation between them differ, and are the same at every replay', async ({
    assert,
  }) => {
    const draw = async () => {
      const seen: unknown[] = []
      const played = new PlayedTurn((ctx) => {
        seen.push(ctx.random(), ctx.random(), ctx.uuid(), ctx.uuid())
      })
      await played.settled()
      return seen
    }
    const first = await draw()
    assert.equal(new Set(first).size, 4)
    assert.deepEqual(await draw(), first)
  })
})
