import type { FileSystem } from '@japa/file-system'
import { test } from '@japa/runner'
import { join } from 'node:path'
import { Discovery } from '../../src/engine/discovery.ts'
import { DurableApp } from '../support/durable_app.ts'
import { plainMaker, recordingLogger } from '../support/definition_factory.ts'

const base = JSON.stringify(new URL('../../src/base_workflow.ts', import.meta.url).href)
const errors = JSON.stringify(new URL('../../src/errors.ts', import.meta.url).href)

/** A workflow that fails with a code and its own name, with these options, or returns what it is given. */
function source(name: string, params: { imports?: string; options: string; fails: boolean }) {
  const end = params.fails
    ? `throw new FatalError('no', '${name}')`
    : `return '${name}: ' + (input.error ?? { code: 'started' }).code`
  return `import { BaseWorkflow } from ${base}
    import { FatalError } from ${errors}
    ${params.imports ?? ''}
    export default class ${name} extends BaseWorkflow {
      static workflow = { name: '${name}', ${params.options} }
      async run(ctx, input) { ${end} }
    }`
}

/** An application whose workflows lie in a directory of its own. */
function appIn(fs: Pick<FileSystem, 'basePath'>, directory: string): DurableApp {
  const path = join(fs.basePath, directory)
  const app: DurableApp = new DurableApp({ discover: () => discovery.discover() })
  const discovery = new Discovery({
    registry: app.registry,
    maker: plainMaker,
    logger: recordingLogger(),
    origin: null,
    inDevelopment: false,
    workflowsPath: path,
    stepsPath: join(path, 'no_steps'),
  })
  return app
}

test.group('Failure routes | workflow files that name each other', () => {
  for (const option of ['onError', 'deadLetterWorkflow'] as const) {
    const options = (workflow: string) =>
      option === 'onError' ? `onError: [{ workflow: ${workflow} }]` : `${option}: ${workflow}`

    test(`OE-1: by class in ${option} they are refused, with the form that works`, async ({
      assert,
      fs,
    }) => {
      const directory = `circular_${option}`
      await fs.create(
        `${directory}/first.ts`,
        source('First', {
          imports: `import Second from './second.ts'`,
          options: options('Second'),
          fails: true,
        })
      )
      await fs.create(
        `${directory}/second.ts`,
        source('Second', {
          imports: `import First from './first.ts'`,
          options: options('First'),
          fails: false,
        })
      )
      const app = appIn(fs, directory)
      const error: unknown = await app.work().then(
        () => null,
        (reason: unknown) => reason
      )
      assert.propertyVal(error, 'code', 'E_CIRCULAR_WORKFLOW_IMPORT')
      const { message } = error as Error
      assert.include(message, join(fs.basePath, directory, 'second.ts'))
      assert.include(
        message,
        `onError, deadLetterWorkflow and engine.start() also a function: () => import(`
      )
    })
  }

  test('OE-1: by functions they are found when a worker starts, and followed', async ({
    assert,
    fs,
    cleanup,
  }) => {
    await fs.create(
      'lazy/first.ts',
      source('First', {
        options: `onError: [{ workflow: () => import('./second.ts') }]`,
        fails: true,
      })
    )
    await fs.create(
      'lazy/second.ts',
      source('Second', {
        imports: `import First from './first.ts'`,
        options: `onError: [{ workflow: () => First }], deadLetterWorkflow: async () => First`,
        fails: false,
      })
    )
    const app = appIn(fs, 'lazy')
    cleanup(() => app.close())
    await app.work()
    const handle = await app.engine.start('First', null)
    assert.equal(await handle.result(), 'Second: First')
    assert.deepEqual(await app.engine.unservedOnErrorRoutes(), [])
  })

  test('OE-1: a file outside the directory is registered by the route that names it, with its own routes', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const importing = (file: string) => `onError: [{ workflow: () => import('${file}') }]`
    await fs.create(
      'outside/app/first.ts',
      source('First', { options: importing('../second.ts'), fails: true })
    )
    await fs.create(
      'outside/second.ts',
      source('Second', { options: importing('./third.ts'), fails: true })
    )
    await fs.create(
      'outside/third.ts',
      source('Third', { options: `tags: ['last']`, fails: false })
    )
    const app = appIn(fs, 'outside/app')
    cleanup(() => app.close())
    await app.work()
    const names = app.registry.workflows().map(({ name }) => name)
    assert.deepEqual(names, ['First', 'Second', 'Third'])
    const handle = await app.engine.start('First', null)
    assert.equal(await handle.result(), 'Third: Second')
  })

  test('OE-1: a function whose import fails stops the worker, with the workflow and the reason', async ({
    assert,
    fs,
  }) => {
    await fs.create(
      'missing/first.ts',
      source('First', {
        options: `onError: [{ code: 'no', workflow: () => import('./mistyped.ts') }]`,
        fails: true,
      })
    )
    const app = appIn(fs, 'missing')
    await assert.rejects(
      () => app.work(),
      /Invalid workflow "First": the handler for "no" in "onError" cannot be loaded: Cannot find module .*mistyped\.ts/
    )
  })

  test('OE-1: a function that returns no workflow stops the worker too', async ({ assert }) => {
    const app = new DurableApp()
    app.engine.register('main', '1', async () => {}, {
      onError: [{ workflow: (() => ({ handler: 1 })) as never }],
    })
    await assert.rejects(() => app.work(), /E_INVALID_WORKFLOW|it does not name a workflow/)
  })
})
