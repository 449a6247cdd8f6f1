import { test } from '@japa/runner'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { KitApp } from './kit_app.ts'
import { blocksOf, pathOf, readPage } from './page.ts'
import { Terminal } from './terminal.ts'

test.group('Quickstart', () => {
  test('works exactly as it is printed', async ({ assert, cleanup }) => {
    const app = await KitApp.create()
    cleanup(() => app.remove())
    const terminal = new Terminal(app)
    cleanup(() => terminal.close())

    for (const block of blocksOf(await readPage('docs/quickstart.md'))) {
      const path = pathOf(block)
      if (block.language === 'sh') await terminal.run(block.text)
      else if (block.language === 'text') await terminal.prints(block.text)
      else if (path !== undefined) await app.write(path, block.text)
      else assert.fail(`Line ${block.line} is neither a command, nor an output, nor a file`)
    }

    const noted = await readFile(join(app.folder, 'tmp/shipping.txt'), 'utf8')
    const [, packedBy, sentBy] =
      /^order 7 packed by process (\d+)\norder 7 sent by process (\d+)\n$/.exec(noted) ?? []
    assert.isDefined(sentBy, noted)
    assert.notEqual(packedBy, sentBy)
  }).timeout(120_000)
})
