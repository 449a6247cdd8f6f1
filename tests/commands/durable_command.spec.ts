import { test } from '@japa/runner'
import { DurableCommand } from '../../src/commands/durable_command.ts'
import { E_SCHEMA_MISSING } from '../../src/errors.ts'
import { commandApp } from './command_app.ts'

test.group('Durable commands', () => {
  test('an expected error is one message and exit code 1', async ({ assert, fs, cleanup }) => {
    const { app, ace, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const error = new E_SCHEMA_MISSING(['main'])
    class Expected extends DurableCommand {
      static override commandName = 'test:expected'
      override async run() {
        throw error
      }
    }
    const rendered: unknown[] = []
    ace.errorHandler.render = async (shown) => void rendered.push(shown)
    const command = await ace.create(Expected, [])
    await command.exec()
    command.assertFailed()
    assert.equal(command.exitCode, 1)
    assert.deepEqual(rendered, [])
    assert.include(printed(), error.message)
    assert.lengthOf(printed().split('\n'), 1)
    assert.notInclude(printed(), 'at ')
  })

  test('any other error is left to the kernel, which prints its stack', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { app, ace, printed } = await commandApp(fs.basePath)
    cleanup(() => app.terminate())
    const errors = [
      new TypeError('undefined is no function'),
      Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }),
    ]
    const rendered: unknown[] = []
    ace.errorHandler.render = async (shown) => void rendered.push(shown)
    for (const error of errors) {
      class Unexpected extends DurableCommand {
        static override commandName = 'test:unexpected'
        override async run() {
          throw error
        }
      }
      const command = await ace.create(Unexpected, [])
      await command.exec()
      assert.equal(command.exitCode, 1)
    }
    assert.deepEqual(rendered, errors)
    assert.equal(printed(), '')
  })
})
