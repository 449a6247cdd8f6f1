import type { FileSystem } from '@japa/file-system'
import { test } from '@japa/runner'
import { rename, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Discovery } from '../../src/engine/discovery.ts'
import { adoptDeclaredSteps } from '../../src/engine/step_declarations.ts'
import { HotReload } from '../support/hot_reload.ts'
import { plainMaker, recordingLogger, targetEnvironment } from '../support/definition_factory.ts'

const baseWorkflow = JSON.stringify(new URL('../../src/base_workflow.ts', import.meta.url).href)
const step = JSON.stringify(new URL('../../src/step.ts', import.meta.url).href)

function workflowSource(name: string, options: { version?: string; head?: string } = {}): string {
  return `
    import { BaseWorkflow } from ${baseWorkflow}
    ${options.head ?? 'export default'} class extends BaseWorkflow {
      static workflow = { name: '${name}', version: '${options.version ?? '1'}' }
      async run() { return '${name}' }
    }
  `
}

let projects = 0
/** A directory of its own for each test: modules are cached by their path. */
function projectIn(fs: FileSystem): Pick<FileSystem, 'create' | 'basePath'> {
  const directory = `project_${projects++}`
  return {
    basePath: join(fs.basePath, directory),
    create: (path, contents) => fs.create(join(directory, path), contents),
  }
}

function discoveryIn(fs: Pick<FileSystem, 'basePath'>, params: { inDevelopment?: boolean } = {}) {
  const logger = recordingLogger()
  const environment = targetEnvironment({ ...params, logger })
  const discovery = new Discovery({
    ...environment,
    workflowsPath: join(fs.basePath, 'app/workflows'),
    stepsPath: join(fs.basePath, 'app/steps'),
  })
  return { discovery, registry: environment.registry, warnings: logger.warnings }
}

test.group('Discovery', () => {
  for (const inDevelopment of [false, true]) {
    test(`warns once of a class that does not extend BaseWorkflow and of a file that exports none${inDevelopment ? ', in development' : ''}`, async ({
      assert,
      fs: files,
    }) => {
      const fs = projectIn(files)
      const body = `{ static workflow = { name: 'x' }; async run() {} }`
      await fs.create('app/workflows/found.ts', workflowSource('found'))
      await fs.create('app/workflows/stray.ts', `export default class Stray ${body}`)
      await fs.create('app/workflows/inner.ts', workflowSource('inner', { head: 'const it =' }))
      await fs.create('app/workflows/types.ts', 'export interface Line { text: string }')
      await fs.create('app/workflows/values.ts', 'export class Parser { run() {} }')
      const { discovery, registry, warnings } = discoveryIn(fs, { inDevelopment })
      await discovery.discover()
      await discovery.discover()
      assert.deepEqual(
        registry.workflows().map(({ name }) => name),
        ['found']
      )
      assert.lengthOf(warnings, 2)
      assert.match(String(warnings[0]), /inner\.ts exports nothing/)
      assert.match(String(warnings[1]), /Stray of .*stray\.ts does not extend BaseWorkflow/)
    })
  }

  test('registers every exported workflow class below the directory, default or named', async ({
    assert,
    fs: files,
  }) => {
    const fs = projectIn(files)
    await fs.create('app/workflows/one.ts', workflowSource('one'))
    await fs.create(
      'app/workflows/deep/er/two.ts',
      `${workflowSource('two', { head: 'export const Two =' })}
       export const Three = class extends Two { static workflow = { name: 'three' } }
       export class Abstract extends BaseWorkflow {}
       export const limit = 4`
    )
    await fs.create('app/workflows/four.js', workflowSource('four'))
    await fs.create('app/workflows/ambient.d.ts', 'throw new Error("a declaration was imported")')
    await fs.create('app/workflows/notes.md', 'not a module')

    const { discovery, registry } = discoveryIn(fs)
    assert.isEmpty(registry.workflows())
    await discovery.discover()

    const found = registry.workflows().map(({ name, version, file }) => [name, version, file])
    assert.sameDeepMembers(found, [
      ['one', '1', join(fs.basePath, 'app/workflows/one.ts')],
      ['two', '1', join(fs.basePath, 'app/workflows/deep/er/two.ts')],
      ['three', '1', join(fs.basePath, 'app/workflows/deep/er/two.ts')],
      ['four', '1', join(fs.basePath, 'app/workflows/four.js')],
    ])
  })

  test('imports step files, whose steps register themselves', async ({
    assert,
    fs: files,
    cleanup,
  }) => {
    const fs = projectIn(files)
    await fs.create(
      'app/steps/mail.ts',
      `import { defineStep } from ${step}
       export const mail = defineStep('discovery.mail', () => 'sent')`
    )
    const { discovery, registry } = discoveryIn(fs)
    cleanup(adoptDeclaredSteps({ registry, maker: plainMaker, inDevelopment: false }))
    await discovery.discover()
    assert.equal(registry.step('discovery.mail')?.file, join(fs.basePath, 'app/steps/mail.ts'))
  })

  test('one step name in two files stops with both paths', async ({ assert, fs: files }) => {
    const fs = projectIn(files)
    const source = `import { defineStep } from ${step}
      export const mail = defineStep('discovery.twice', () => 'sent')`
    await fs.create('app/steps/a.ts', source)
    await fs.create('app/steps/b.ts', source)
    await assert.rejects(
      () => discoveryIn(fs).discovery.discover(),
      /"discovery\.twice" is defined twice: in .*\/app\/steps\/a\.ts and in .*\/app\/steps\/b\.ts/
    )
  })

  test('an application without the directories has nothing to discover', async ({
    assert,
    fs: files,
  }) => {
    const fs = projectIn(files)
    const { discovery, registry } = discoveryIn(fs)
    await discovery.discover()
    assert.isEmpty(registry.workflows())
  })

  test('a file that throws stops with its name, and is tried again by the next call', async ({
    assert,
    fs: files,
  }) => {
    const fs = projectIn(files)
    await fs.create('app/workflows/broken.ts', 'throw new Error("no such tariff")')
    const { discovery } = discoveryIn(fs)
    const failure = /app\/workflows\/broken\.ts: no such tariff/
    await assert.rejects(() => discovery.discover(), failure)
    await assert.rejects(() => discovery.discover(), failure)
  })

  test('one workflow name in two files stops with both paths', async ({ assert, fs: files }) => {
    const fs = projectIn(files)
    await fs.create('app/workflows/a.ts', workflowSource('same'))
    await fs.create('app/workflows/b.ts', workflowSource('same'))
    await assert.rejects(
      () => discoveryIn(fs).discovery.discover(),
      /"same" version "1".*workflows\/a\.ts.*workflows\/b\.ts/
    )
  })

  test('one workflow name twice in a file stops with its path', async ({ assert, fs: files }) => {
    const fs = projectIn(files)
    await fs.create(
      'app/workflows/a.ts',
      `${workflowSource('same')}
       export class Second extends BaseWorkflow {
         static workflow = { name: 'same' }
         async run() {}
       }`
    )
    await assert.rejects(
      () => discoveryIn(fs).discovery.discover(),
      /"same" version "1".*another class of .*workflows\/a\.ts/
    )
  })

  test('files that import each other stop with both paths and what to name instead', async ({
    assert,
    fs: files,
  }) => {
    const fs = projectIn(files)
    const source = (other: string) => `
      import { BaseWorkflow } from ${baseWorkflow}
      import { Workflow as Other } from './${other}.ts'
      export class Workflow extends BaseWorkflow {
        static next = Other
        async run() {}
      }`
    await fs.create('app/workflows/a.ts', source('b'))
    await fs.create('app/workflows/b.ts', source('a'))
    await assert.rejects(
      () => discoveryIn(fs).discovery.discover(),
      /workflows\/b\.ts and .*workflows\/a\.ts import each other.*workflowRef\(name\)/
    )
  })

  test('the default version is the highest one, whatever the files are called', async ({
    assert,
    fs: files,
  }) => {
    const fs = projectIn(files)
    await fs.create('app/workflows/ship_order.ts', workflowSource('ship', { version: '10' }))
    await fs.create('app/workflows/ship_order_v1.ts', workflowSource('ship', { version: '1' }))
    await fs.create('app/workflows/ship_order_v9.ts', workflowSource('ship', { version: '9' }))
    const { discovery, registry } = discoveryIn(fs)
    await discovery.discover()
    assert.equal(registry.workflow('ship')?.version, '10')
  })

  test('looks once, also for calls at the same time', async ({ assert, fs: files }) => {
    const fs = projectIn(files)
    await fs.create('app/workflows/one.ts', workflowSource('one'))
    const { discovery, registry } = discoveryIn(fs)
    let registrations = 0
    registry.onChange(() => registrations++)
    await Promise.all([discovery.discover(), discovery.discover()])
    await fs.create('app/workflows/two.ts', workflowSource('two'))
    await discovery.discover()
    assert.equal(registrations, 1)
    assert.isUndefined(registry.workflow('two'))
  })
})

test.group('Discovery | development', () => {
  test('looks again at each call, and registers nothing twice', async ({ assert, fs: files }) => {
    const fs = projectIn(files)
    await fs.create('app/workflows/one.ts', workflowSource('one'))
    const { discovery, registry } = discoveryIn(fs, { inDevelopment: true })
    await discovery.discover()
    let registrations = 0
    registry.onChange(() => registrations++)
    await fs.create('app/workflows/two.ts', workflowSource('two'))
    await discovery.discover()
    assert.equal(registrations, 1)
    assert.equal(registry.workflow('two')?.name, 'two')
  })

  test('looks for changes only when a file came or was written to, also after a look that failed', async ({
    assert,
    fs: files,
  }) => {
    const fs = projectIn(files)
    await fs.create('app/workflows/one.ts', workflowSource('one'))
    const { discovery, registry } = discoveryIn(fs, { inDevelopment: true })
    await discovery.discover()
    let registrations = 0
    registry.onChange(() => registrations++)
    await discovery.discoverChanges()
    assert.equal(registrations, 0)
    await fs.create('app/workflows/two.ts', workflowSource('two'))
    await discovery.discoverChanges()
    assert.equal(registry.workflow('two')?.name, 'two')

    await fs.create('app/workflows/broken.ts', 'throw new Error("no tariff")')
    await assert.rejects(() => discovery.discoverChanges(), /broken\.ts: no tariff/)
    await discovery.discoverChanges()
    await utimes(join(fs.basePath, 'app/workflows/broken.ts'), 1, 1)
    await assert.rejects(() => discovery.discoverChanges(), /broken\.ts: no tariff/)
  })

  test('a file that was renamed is the same workflow', async ({ assert, fs: files }) => {
    const fs = projectIn(files)
    await fs.create('app/workflows/one.ts', workflowSource('one'))
    const { discovery, registry } = discoveryIn(fs, { inDevelopment: true })
    await discovery.discover()
    const renamed = join(fs.basePath, 'app/workflows/renamed.ts')
    await rename(join(fs.basePath, 'app/workflows/one.ts'), renamed)
    await discovery.discoverChanges()
    assert.equal(registry.workflow('one')?.file, renamed)
  })

  for (const inDevelopment of [true, false])
    test(`a step file that was renamed ${inDevelopment ? 'has the same step' : 'is refused outside of development'}`, async ({
      assert,
      fs: files,
      cleanup,
    }) => {
      const fs = projectIn(files)
      const name = `discovery.renamed_${inDevelopment}`
      await fs.create(
        'app/steps/one.ts',
        `import { defineStep } from ${step}
         export const one = defineStep('${name}', () => 1)`
      )
      const { discovery, registry } = discoveryIn(fs, { inDevelopment: true })
      cleanup(adoptDeclaredSteps({ registry, maker: plainMaker, inDevelopment }))
      await discovery.discover()
      const original = join(fs.basePath, 'app/steps/one.ts')
      const renamed = join(fs.basePath, 'app/steps/renamed.ts')
      await rename(original, renamed)
      if (inDevelopment) await discovery.discoverChanges()
      else await assert.rejects(() => discovery.discoverChanges(), /is defined twice/)
      assert.equal(registry.step(name)?.file, inDevelopment ? renamed : original)
    })

  test('a class that its file exports no more is named with its version and the file', async ({
    assert,
    fs: files,
  }) => {
    const fs = projectIn(files)
    await fs.create(
      'app/workflows/vanishing.ts',
      `import { BaseWorkflow } from ${baseWorkflow}
       export let current = class extends BaseWorkflow {
         static workflow = { name: 'vanishing', version: '3' }
         async run() {}
       }
       export function vanish() { current = undefined }`
    )
    const { discovery, registry } = discoveryIn(fs, { inDevelopment: true })
    await discovery.discover()
    const file = join(fs.basePath, 'app/workflows/vanishing.ts')
    const { vanish } = await import(pathToFileURL(file).href)
    vanish()
    await assert.rejects(
      async () => registry.workflow('vanishing', '3')?.createBody(),
      `Invalid workflow "vanishing": ${file} does not export its version "3" any more. Start the process again`
    )
  })

  test('each body is made of the class that its file exports at that time', async ({
    assert,
    fs: files,
  }) => {
    const fs = projectIn(files)
    // Stands for what hot reload does: the file hands out another class after a change.
    await fs.create(
      'app/workflows/changing.ts',
      `import { BaseWorkflow } from ${baseWorkflow}
       const classes = {}
       export function change(answer) {
         current = class Changing extends BaseWorkflow {
           static workflow = { name: 'changing' }
           async run() { return answer }
         }
       }
       let current
       change('first')
       export { current }`
    )
    const { discovery, registry } = discoveryIn(fs, { inDevelopment: true })
    await discovery.discover()
    const definition = registry.workflow('changing')
    const run = async () => {
      const body = await definition?.createBody()
      return body?.({} as never, undefined)
    }
    assert.equal(await run(), 'first')
    const file = pathToFileURL(join(fs.basePath, 'app/workflows/changing.ts')).href
    const { change } = await import(file)
    change('second')
    assert.equal(await run(), 'second')
  })

  /** A workflow and what it imports, as hot reload serves them, and how often they were said to be replaced. */
  async function reloadable(files: FileSystem, cleanup: (callback: () => void) => void) {
    const fs = projectIn(files)
    const hotReload = new HotReload(fs.basePath)
    cleanup(() => hotReload.stop())
    const answer = (value: string) => fs.create('app/answer.ts', `export const answer = '${value}'`)
    await answer('first')
    await fs.create(
      'app/workflows/answering.ts',
      `import { BaseWorkflow } from ${baseWorkflow}
       import { answer } from '../answer.ts'
       export default class extends BaseWorkflow {
         static workflow = { name: 'answering' }
         async run() { return answer }
       }`
    )
    const { discovery, registry } = discoveryIn(fs, { inDevelopment: true })
    await discovery.discover()
    return { discovery, registry, hotReload, answer, before: registry.reloads }
  }

  test('what a workflow imports is seen to be replaced, once, whenever hot reload gets to it', async ({
    assert,
    fs,
    cleanup,
  }) => {
    const { discovery, registry, hotReload, answer, before } = await reloadable(fs, cleanup)
    await answer('second')
    await discovery.discoverChanges()
    assert.equal(registry.reloads, before)
    hotReload.replace()
    await discovery.discoverChanges()
    await discovery.discoverChanges()
    assert.equal(registry.reloads, before + 1)
    const body = await registry.workflow('answering')!.createBody()
    assert.equal(await body({} as never, undefined), 'second')
    assert.equal(registry.reloads, before + 1)
  })

  test('so it is when a body is made first', async ({ assert, fs, cleanup }) => {
    const { discovery, registry, hotReload, before } = await reloadable(fs, cleanup)
    hotReload.replace()
    await registry.workflow('answering')!.createBody()
    assert.equal(registry.reloads, before + 1)
    await discovery.discoverChanges()
    assert.equal(registry.reloads, before + 1)
  })

  test('so it is after a look that failed', async ({ assert, fs, cleanup }) => {
    const { discovery, registry, hotReload, answer, before } = await reloadable(fs, cleanup)
    await answer(`'`)
    hotReload.replace()
    await assert.rejects(() => discovery.discoverChanges(), /answering\.ts/)
    await discovery.discoverChanges()
    assert.equal(registry.reloads, before)
    await answer('second')
    hotReload.replace()
    await discovery.discoverChanges()
    assert.equal(registry.reloads, before + 1)
  })
})
