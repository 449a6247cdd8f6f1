import { test } from '@japa/runner'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { servicesOfBlocks } from './block_files.ts'
import { KitApp } from './kit_app.ts'
import { blocksOf, pagePaths, pathOf, readPage } from './page.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

const CONFIGURATION = {
  extends: '@adonisjs/tsconfig/tsconfig.app.json',
  compilerOptions: {
    noEmit: true,
    rootDir: './',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noImplicitOverride: true,
    noUnusedLocals: false,
  },
}

/**
 * The TypeScript blocks of all pages as files, by path. A block that names its path is that file; any other is a module of its
 * own, named after its page and line.
 */
async function filesOfPages(): Promise<Map<string, string>> {
  const files = new Map<string, string>()
  for (const page of await pagePaths()) {
    for (const block of blocksOf(await readPage(page))) {
      if (block.language !== 'ts') continue
      const where = `${page.replaceAll(/\W/g, '_')}_line_${block.line}`
      const path = pathOf(block) ?? `blocks/${where}.ts`
      if (files.has(path)) throw new Error(`${page}:${block.line} shows ${path} a second time`)
      files.set(path, pathOf(block) ? block.text : `${block.text}\nexport {}\n`)
    }
  }
  return files
}

function compile(folder: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  execFile(process.execPath, [tsc, '--project', folder], { cwd: folder }, (_, stdout) =>
    resolve(stdout)
  )
  return promise
}

test.group('Code on the pages', () => {
  test('compiles against the packed package, under the strictest settings', async ({
    assert,
    cleanup,
  }) => {
    const app = await KitApp.create()
    cleanup(() => app.remove())
    await app.install()
    const folders = { '#workflows/*': './app/workflows/*.js', '#steps/*': './app/steps/*.js' }
    await app.addImports(folders)
    await app.write('tsconfig.json', JSON.stringify(CONFIGURATION))

    const files = await filesOfPages()
    assert.isAbove(files.size, 0)
    for (const [path, text] of Object.entries(servicesOfBlocks)) await app.write(path, text)
    for (const [path, text] of files) await app.write(path, text)
    assert.equal(await compile(app.folder), '')
  }).timeout(120_000)
})
