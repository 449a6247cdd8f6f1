import { test } from '@japa/runner'
import { partsOf } from '../../scripts/pages/parts.ts'
import { PageOfSnippets } from '../../scripts/pages/page_of_snippets.ts'
import { isForeign, snippetsOf } from '../../scripts/pages/page_snippets.ts'

function prepared(page: string) {
  const snippets = new PageOfSnippets('page')
  return snippetsOf(page).map((snippet) => snippets.prepare(snippet))
}

test.group('Snippets of a page', () => {
  test('are the paragraphs between prose that TypeScript can parse, with the empty lines in them', ({
    assert,
  }) => {
    const code = 'export class Ping {\n  a = 1\n\n  b = 2\n}\n\nengine.onDead(() => {})'
    const page = `Heading\n\nSome words - about a class.\n\n${code}\n\nMatching\n\nMore words.`
    assert.deepEqual(snippetsOf(page), [{ line: 5, language: 'typescript', code }])
  })

  test('are read out of one line that has the line numbers in it', ({ assert }) => {
    const page = 'Words.\n\n1// 2 of them2 3engine.onDead((run) => {4  seen(run, 3, 5)5})'
    const [snippet] = snippetsOf(page)
    assert.equal(snippet?.code, '// 2 of them\n\nengine.onDead((run) => {\n  seen(run, 3, 5)\n})')
  })

  test('are calls that a sentence names, each once', ({ assert }) => {
    const page =
      'Use engine.cancel(runId, { reason: "(no)" }) or engine.pause().\n\nAgain engine.pause().'
    const codes = snippetsOf(page).map(({ code }) => code)
    assert.deepEqual(codes, ['engine.cancel(runId, { reason: "(no)" })', 'engine.pause()'])
  })

  test('in another language are told apart: Python, and whole pages', ({ assert }) => {
    const page = '@worker.task("t")\ndef task(ctx):\n    return 1'
    assert.equal(snippetsOf(page)[0]?.language, 'python')
    assert.isTrue(isForeign("Words.\n\nimport 'package:x/x.dart';\n"))
    assert.isFalse(isForeign("import x from 'x'"))
  })

  test('are split where a module would have a second default export', ({ assert }) => {
    const code =
      'export default defineConfig({})\nexport default class A extends B {}\nengine.register("a", "1", f)'
    assert.deepEqual(
      partsOf(code)?.map(({ kind }) => kind),
      ['config', 'workflows', 'preload']
    )
  })
})

test.group('Snippets that nothing runs', () => {
  for (const [what, page, reason] of [
    ['code that cannot be parsed', 'const a = {\n  b: ,\n}', /cannot parse/],
    ['code that belongs to nothing known', 'export const a = [1]', /No rule/],
    ['a call without a scenario', 'Use engine.explode(runId).', /No scenario/],
    ['a name that nobody supplies', 'engine.onDead(() => fireworks.start())', /"fireworks"/],
    [
      'a class without a scenario',
      "export class A extends BaseWorkflow {\n  static workflow = { name: 'a' }\n  async run() {}\n}",
      /No scenario/,
    ],
  ] as const) {
    test(`fail: ${what}`, ({ assert }) => {
      const [first] = prepared(page)
      assert.equal(first?.kind, 'failed')
      assert.match(first?.kind === 'failed' ? first.reason : '', reason)
    })
  }

  test('are skipped with the reason where the package has no part for them', ({ assert }) => {
    const kinds = prepared('Use engine.registerRemote(name).\n\ndef task(ctx):\n    return 1')
    assert.deepEqual(
      kinds.map((one) => one.kind),
      ['skipped', 'skipped']
    )
  })

  test('do not pass for what an earlier one of the page exports: that one is run along', ({
    assert,
  }) => {
    const page = `export class SackWorkflow extends BaseWorkflow {
  static workflow = { name: 'l', onError: [] }
  async run(ctx: WorkflowCtx, line: Line) { return ctx.step(validateLine, line) }
}

Run ctx.all(SackWorkflow, lines) there.`
    const [, call] = prepared(page)
    assert.equal(call?.kind, 'ready')
    const paths = call?.kind === 'ready' ? Object.keys(call.prepared.files) : []
    assert.includeMembers(paths, ['app/workflows/line_1_0.ts', 'app/workflows/line_6_0.ts'])
  })
})
