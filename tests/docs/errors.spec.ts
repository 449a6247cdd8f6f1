import { test } from '@japa/runner'
import * as errors from '../../src/errors.ts'
import { readPage } from './page.ts'

/** Texts of the entries, by code. */
function entriesOf(page: string): Map<string, string> {
  const [, ...sections] = page.split(/^### /m)
  return new Map(
    sections.map((section) => {
      const [code = '', ...lines] = section.split('\n')
      return [code, lines.join('\n')]
    })
  )
}

test.group('Page on errors', () => {
  test('has one entry for each code, and none too many', async ({ assert }) => {
    const page = await readPage('docs/errors.md')
    const documented = [...page.matchAll(/^### (.+)$/gm)].map(([, code]) => code)
    const thrown = Object.keys(errors).filter((name) => name.startsWith('E_'))
    assert.isAbove(thrown.length, 0)
    assert.deepEqual(documented.toSorted(), [...thrown, ...errors.RECORDED_CODES].toSorted())
  })

  test('says of each code what it means, where it comes from and what to do', async ({
    assert,
  }) => {
    for (const [code, text] of entriesOf(await readPage('docs/errors.md')))
      assert.match(text, /\*\*Meaning:\*\* .+\n- \*\*Cause:\*\* .+\n- \*\*Fix:\*\* .+\n/, code)
  })
})
