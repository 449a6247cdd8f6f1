import { test } from '@japa/runner'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pagePaths, readPage } from './page.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The anchors of a page: its headings, as they are written in links. */
function anchorsOf(page: string): string[] {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading)
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-')
  )
}

test.group('Links between pages', () => {
  test('lead to files and headings that exist', async ({ assert }) => {
    let links = 0
    for (const path of await pagePaths()) {
      const page = await readPage(path)
      for (const [, target = ''] of page.matchAll(/\]\((?!https?:)([^)]+)\)/g)) {
        const [file = '', anchor] = target.split('#')
        const linked = file === '' ? path : join(dirname(path), file)
        assert.isTrue(existsSync(join(root, linked)), `${path} links to ${target}`)
        if (anchor !== undefined) assert.include(anchorsOf(await readPage(linked)), anchor, path)
        links++
      }
    }
    assert.isAbove(links, 0)
  })
})
