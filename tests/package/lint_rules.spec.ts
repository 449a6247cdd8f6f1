import { test } from '@japa/runner'
import { ScratchProject } from './scratch_project.ts'

/** One file each, with the rule that refuses it. */
const refused: { rule: string; file: string; source: string }[] = [
  { rule: 'no-restricted-syntax', file: 'src/core/clock', source: `export const a = Date.now()` },
  { rule: 'no-restricted-syntax', file: 'src/core/today', source: `export const a = new Date()` },
  {
    rule: 'no-restricted-globals',
    file: 'src/core/timer',
    source: `setTimeout(() => undefined, 1)\nexport const a = 1`,
  },
  {
    rule: 'no-restricted-globals',
    file: 'src/replay/monotonic',
    source: `export const a = performance.now()`,
  },
  {
    rule: 'no-restricted-globals',
    file: 'src/replay/environment',
    source: `export const a = process.pid`,
  },
  {
    rule: 'no-restricted-globals',
    file: 'src/replay/macrotask',
    source: `setImmediate(() => undefined)\nexport const a = 1`,
  },
  {
    rule: 'no-restricted-properties',
    file: 'src/core/chance',
    source: `export const a = Math.random()`,
  },
  {
    rule: 'no-restricted-imports',
    file: 'src/core/disk',
    source: `import { readFileSync } from 'node:fs'\nexport const a = readFileSync`,
  },
  {
    rule: 'no-restricted-syntax',
    file: 'src/engine/assertion',
    source: `export const a = 1 as any`,
  },
  {
    rule: '@typescript-eslint/ban-ts-comment',
    file: 'src/engine/ignored',
    source: `// @ts-ignore\nexport const a: string = 1`,
  },
  {
    rule: '@typescript-eslint/no-floating-promises',
    file: 'src/engine/floating',
    source: `async function work() {}\nwork()\nexport const a = 1`,
  },
  {
    rule: '@typescript-eslint/no-misused-promises',
    file: 'src/engine/misused',
    source: `export const a = [1].forEach(async () => {})`,
  },
  {
    rule: '@typescript-eslint/switch-exhaustiveness-check',
    file: 'src/engine/default_arm',
    source: [
      `export function a(status: 'pending' | 'running') {`,
      `  switch (status) {`,
      `    case 'pending':`,
      `      return 1`,
      `    default:`,
      `      return 2`,
      `  }`,
      `}`,
    ].join('\n'),
  },
]

test.group('Lint rules', (group) => {
  let messages = new Map<string, (string | null)[]>()

  group.setup(async () => {
    const project = await ScratchProject.create(
      ['eslint.config.js'],
      Object.fromEntries([
        ...refused.map(({ file, source }) => [`${file}.ts`, source]),
        ['src/engine/silenced.ts', `export const a = 1 as any // eslint-disable-line`],
        ['src/engine/lawful.ts', `export const a = Date.now()`],
      ])
    )
    const output = await project.run('eslint/bin/eslint.js', ['--format=json', '.'])
    const results = JSON.parse(output) as {
      filePath: string
      messages: { ruleId: string | null }[]
    }[]
    messages = new Map(
      results.map(({ filePath, messages: found }) => [
        filePath.slice(filePath.indexOf('src/')),
        found.map(({ ruleId }) => ruleId),
      ])
    )
    await project.remove()
  })

  test('{rule} refuses {file}')
    .with(refused)
    .run(({ assert }, { rule, file }) => {
      assert.include(messages.get(`${file}.ts`), rule)
    })

  test('a comment does not switch a rule off', ({ assert }) => {
    assert.include(messages.get('src/engine/silenced.ts'), 'no-restricted-syntax')
  })

  test('a clock is allowed outside core and replay', ({ assert }) => {
    assert.deepEqual(messages.get('src/engine/lawful.ts'), [])
  })
})
