import { test } from '@japa/runner'
import { readFile } from 'node:fs/promises'
import { configurationPage } from '../scripts/docs/configuration.ts'
import { OPTIONS, WORKER_OPTIONS } from '../src/option_table.ts'
import { resolveOptions } from '../src/options.ts'

const rows = [
  ...Object.entries(OPTIONS).map(([key, row]) => ({ key, row })),
  ...Object.entries(WORKER_OPTIONS).map(([key, row]) => ({ key: `worker.${key}`, row })),
]

/** The options object that sets one option of the table. */
function given(key: string, value: unknown): object {
  const [first = '', second] = key.split('.')
  return second === undefined ? { [first]: value } : { [first]: { [second]: value } }
}

test.group('Options | defaults', () => {
  test('an empty configuration has the default of every row', ({ assert }) => {
    const { worker, ...options } = resolveOptions({})
    for (const { key, row } of rows) {
      const name = key.replace('worker.', '')
      const value: unknown = Reflect.get(key === name ? options : worker, name)
      assert.deepEqual(value, row.default, key)
    }
    assert.deepEqual(resolveOptions({ leaseMs: undefined, worker: undefined }), resolveOptions())
  })

  test('the defaults are accepted by their own rows', ({ assert }) => {
    for (const { key, row } of rows) assert.isTrue(row.accepts(row.default), key)
  })

  test('what is given is kept, the rest has its default', ({ assert }) => {
    const options = resolveOptions({ leaseMs: 500, hangMs: 900, worker: { concurrency: 3 } })
    assert.containSubset(options, { leaseMs: 500, hangMs: 900, stallMs: 60_000 })
    assert.containSubset(options.worker, { concurrency: 3, embedded: false })
  })
})

test.group('Options | refusals', () => {
  for (const { key, row } of rows) {
    test(`${key}: a value of another kind is refused, naming key, value and what is expected`, ({
      assert,
    }) => {
      for (const wrong of [-1, 1.5, {}, []]) {
        assert.throws(
          () => resolveOptions(given(key, wrong)),
          `Invalid option "${key}" in config/durable.ts: got ${JSON.stringify(wrong)}, expected ${row.expected}`
        )
      }
    })
  }

  for (const { title, options, message } of [
    {
      title: 'an unknown option, with the nearest name',
      options: { leesMs: 4 },
      message: /"leesMs".*there is no such option\. Did you mean "leaseMs"\?/,
    },
    {
      title: 'an unknown option of the worker',
      options: { worker: { embeded: true } },
      message: /"worker\.embeded".*Did you mean "worker\.embedded"\?/,
    },
    {
      title: 'an unknown option that is near to none',
      options: { colour: 'red' },
      message: /"colour".*Known are leaseMs, /,
    },
    {
      title: 'a worker that is no object',
      options: { worker: true },
      message: /"worker".*got true, expected an object/,
    },
    {
      title: 'a hang that is found before the lease has lapsed',
      options: { leaseMs: 30_000, hangMs: 30_000 },
      message: /"hangMs".*got 30000, expected more than "leaseMs" \(30000\)/,
    },
    {
      title: 'idle polling that is quicker than polling',
      options: { pollMs: 2_000, idlePollMs: 1_000 },
      message: /"idlePollMs".*expected at least "pollMs" \(2000\)/,
    },
    { title: 'a wait too long for a timer', options: { pollMs: 2 ** 31 }, message: /"pollMs"/ },
    { title: 'no namespaces', options: { namespaces: [] }, message: /"namespaces"/ },
    { title: 'a name with white space', options: { origin: 'a b' }, message: /"origin"/ },
    {
      title: 'a namespace that no run can have',
      options: { namespaces: ['a😀'] },
      message: /"namespaces"/,
    },
  ]) {
    test(`refuses ${title}`, ({ assert }) => {
      assert.throws(() => resolveOptions(options), message)
    })
  }
})

test.group('Options | names', () => {
  test('a namespace that a run can have is accepted', ({ assert }) => {
    const joined = 'a\u200db'
    assert.deepEqual(resolveOptions({ namespaces: [joined] }).namespaces, [joined])
  })
})

class Plain {}
class DeadRun {
  static workflow = { name: 'ops.dead_run' }
}
class Spaced {
  static workflow = { name: 'ops dead run' }
}

test.group('Options | deadLetterWorkflow', () => {
  for (const { title, target } of [
    { title: 'a name', target: 'ops.dead_run' },
    { title: 'a class', target: DeadRun },
    { title: 'a ref', target: { name: 'ops.dead_run', version: '2' } },
    { title: 'a function, which is not called', target: () => assertNever() },
  ]) {
    test(`takes ${title} (DL-21)`, ({ assert }) => {
      const options = resolveOptions({ deadLetterWorkflow: target })
      assert.strictEqual(options.deadLetterWorkflow as unknown, target)
    })
  }

  for (const { title, target } of [
    { title: 'a name with white space', target: 'ops dead run' },
    { title: 'an empty name', target: '' },
    { title: 'a class without a workflow', target: Plain },
    { title: 'a class whose workflow has no name that can be used', target: Spaced },
    { title: 'a ref whose version is no text', target: { name: 'ops.dead_run', version: 2 } },
  ]) {
    test(`refuses ${title}`, ({ assert }) => {
      const resolve = () => resolveOptions({ deadLetterWorkflow: target })
      assert.throws(resolve, /"deadLetterWorkflow" in config\/durable\.ts: .*expected a workflow/)
    })
  }
})

function assertNever(): never {
  throw new Error('It was called')
}

test.group('Options | documentation', () => {
  test('docs/configuration.md is what the table says', async ({ assert }) => {
    const page = await readFile(new URL('../docs/configuration.md', import.meta.url), 'utf8')
    assert.equal(page, await configurationPage(), 'Run: npm run docs')
  })
})
