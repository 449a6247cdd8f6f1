import { test } from '@japa/runner'
import { ScratchProject } from './scratch_project.ts'

/** Files that break nothing, for the others to import. */
const lawful = {
  'index.ts': `export { engine } from './src/engine/engine.ts'`,
  'providers/durable_provider.ts': `import '../src/worker/worker.ts'\nimport '../src/stores/memory/store.ts'`,
  'services/main.ts': `export const service = 1`,
  'src/channels.ts': `export const channel = 1`,
  'src/contracts/store.ts': `import type { Run } from '../core/run.ts'\nexport type Store = Run`,
  'src/core/run.ts': `import { failure } from '../errors.ts'\nexport type Run = typeof failure\nexport const run = 1`,
  'src/dashboard/queries.ts': `import '../engine/engine.ts'\nimport type { Store } from '../contracts/store.ts'\nexport type Queries = Store`,
  'src/engine/engine.ts': `import '../replay/turn.ts'\nimport '../channels.ts'\nexport const engine = 1`,
  'src/engine/registry.ts': `export const registry = 1`,
  'src/errors.ts': `export const failure = 1`,
  'src/maintenance/timers.ts': `import '../engine/engine.ts'\nexport const timers = 1`,
  'src/replay/turn.ts': `import '../core/run.ts'\nexport const turn = 1`,
  'src/stores/lucid/store.ts': `import '@adonisjs/lucid/database'\nexport const store = 1`,
  'src/stores/memory/store.ts': `import '../../core/run.ts'\nexport const store = 1`,
  'src/transports/envelope.ts': `export const envelope = 1`,
  'src/transports/memory/transport.ts': `import '../envelope.ts'\nexport const transport = 1`,
  'src/transports/redis/transport.ts': `import '../envelope.ts'\nexport const transport = 1`,
  'src/worker/worker.ts': `import '../engine/engine.ts'\nimport '../maintenance/timers.ts'\nexport const worker = 1`,
  'tests/store.spec.ts': `import '../src/stores/lucid/store.ts'\nexport const suite = 1`,
}

/** One file each, with the one import that is refused and the rule that refuses it. */
const refused: { rule: string; file: string; imports: string }[] = [
  { rule: 'layer-core', file: 'src/core/to_engine', imports: '../engine/registry.ts' },
  { rule: 'layer-core', file: 'src/core/to_contracts', imports: '../contracts/store.ts' },
  { rule: 'core-is-pure', file: 'src/core/to_node', imports: 'node:fs' },
  { rule: 'core-is-pure', file: 'src/core/to_package', imports: 'luxon' },
  { rule: 'layer-replay', file: 'src/replay/to_engine', imports: '../engine/registry.ts' },
  { rule: 'replay-is-pure', file: 'src/replay/to_node', imports: 'node:timers' },
  { rule: 'contracts-are-types', file: 'src/contracts/to_value', imports: '../core/run.ts' },
  { rule: 'layer-contracts', file: 'src/contracts/to_errors', imports: '../errors.ts' },
  { rule: 'layer-engine', file: 'src/engine/to_store', imports: '../stores/memory/store.ts' },
  { rule: 'layer-engine', file: 'src/engine/to_worker', imports: '../worker/worker.ts' },
  { rule: 'layer-engine', file: 'src/engine/to_timers', imports: '../maintenance/timers.ts' },
  { rule: 'layer-maintenance', file: 'src/maintenance/up', imports: '../worker/worker.ts' },
  { rule: 'layer-worker', file: 'src/worker/to_store', imports: '../stores/memory/store.ts' },
  { rule: 'layer-stores', file: 'src/stores/memory/up', imports: '../../engine/registry.ts' },
  { rule: 'stores-stand-alone', file: 'src/stores/memory/beside', imports: '../lucid/store.ts' },
  { rule: 'layer-transports', file: 'src/transports/memory/up', imports: '../../engine/engine.ts' },
  {
    rule: 'transports-stand-alone',
    file: 'src/transports/memory/beside',
    imports: '../redis/transport.ts',
  },
  { rule: 'layer-dashboard', file: 'src/dashboard/deep', imports: '../engine/registry.ts' },
  { rule: 'layer-testing', file: 'src/testing/to_worker', imports: '../worker/worker.ts' },
  {
    rule: 'databases-only-in-their-drivers',
    file: 'src/engine/to_lucid',
    imports: '@adonisjs/lucid/database',
  },
  {
    rule: 'src-is-below-composition',
    file: 'src/worker/to_provider',
    imports: '../../providers/durable_provider.ts',
  },
  {
    rule: 'services-are-for-applications',
    file: 'providers/to_service',
    imports: '../services/main.ts',
  },
  { rule: 'no-import-of-an-index', file: 'tests/to_index', imports: '../index.ts' },
  {
    rule: 'product-imports-no-test-code',
    file: 'src/testing/to_test',
    imports: '../../tests/store.spec.ts',
  },
  {
    rule: 'product-imports-no-development-dependency',
    file: 'src/testing/to_japa',
    imports: '@japa/runner',
  },
  {
    rule: 'playground-is-a-user',
    file: 'playground/deep',
    imports: '../src/engine/engine.ts',
  },
  { rule: 'no-file-outside-the-layers', file: 'src/elsewhere/file', imports: '../core/run.ts' },
  { rule: 'everything-resolves', file: 'src/engine/to_nothing', imports: './nothing.ts' },
]

const offenders = Object.fromEntries(
  refused.map(({ file, imports }) => [`${file}.ts`, `import '${imports}'\nexport const name = 1`])
)

const cycle = {
  'src/engine/left.ts': `import type { Right } from './right.ts'\nexport type Left = Right[]`,
  'src/engine/right.ts': `import type { Left } from './left.ts'\nexport type Right = Left[]`,
}

test.group('Layers', (group) => {
  let output = ''

  group.setup(async () => {
    const project = await ScratchProject.create(['.dependency-cruiser.mjs'], {
      ...lawful,
      ...offenders,
      ...cycle,
    })
    const args = ['--config=.dependency-cruiser.mjs', '.']
    output = await project.run('dependency-cruiser/bin/dependency-cruiser.mjs', args)
    await project.remove()
  })

  test('{rule}: {file} may not import {imports}')
    .with(refused)
    .run(({ assert }, { rule, file }) => {
      assert.include(output, `error ${rule}: ${file}.ts → `)
    })

  test('a cycle of types alone is refused', ({ assert }) => {
    assert.match(output, /error no-cycles: src\/engine\/(left|right)\.ts/)
  })

  test('imports that follow the layers are not refused', ({ assert }) => {
    for (const file of Object.keys(lawful)) {
      assert.notInclude(output, `: ${file} → `)
    }
  })
})
