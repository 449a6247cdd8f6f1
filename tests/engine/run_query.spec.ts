import { test } from '@japa/runner'
import { RUN_STATUSES } from '../../src/core/run.ts'
import { DurableApp } from '../support/durable_app.ts'

test.group('Values of a listing', (group) => {
  let app: DurableApp
  group.each.setup(() => {
    app = new DurableApp()
    return () => app.close()
  })
  const name = 'a name of 1 to 200 characters without white space'
  const limit = 'a whole number from 1 to 1000'
  const statuses = `one of ${RUN_STATUSES.join(', ')}`

  for (const { query, got, expected } of [
    { query: { status: 'done' }, got: "'done'", expected: statuses },
    { query: { status: ['failed'] }, got: "[ 'failed' ]", expected: statuses },
    { query: { status: null }, got: 'null', expected: statuses },
    { query: { limit: '10' }, got: "'10'", expected: limit },
    { query: { limit: 0 }, got: '0', expected: limit },
    { query: { limit: 1_001 }, got: '1001', expected: limit },
    { query: { limit: Number.NaN }, got: 'NaN', expected: limit },
    { query: { ids: 'r1' }, got: "'r1'", expected: 'a list of run ids' },
    { query: { ids: ['r1', 2] }, got: "[ 'r1', 2 ]", expected: 'a list of run ids' },
    { query: { tag: ['a', 'b'] }, got: "[ 'a', 'b' ]", expected: name },
    { query: { tag: '' }, got: "''", expected: name },
    { query: { workflow: { name: 'x' } }, got: "{ name: 'x' }", expected: name },
    { query: { namespace: 7 }, got: '7', expected: name },
    { query: { parentId: 'a\0' }, got: String.raw`'a\x00'`, expected: 'a run id' },
    { query: { after: null }, got: 'null', expected: 'the "next" of the page before' },
    {
      query: { attributes: { paid: null } },
      got: '{ paid: null }',
      expected: 'an object of texts, numbers, booleans and dates',
    },
  ]) {
    const [option] = Object.keys(query)
    test(`${option}: ${got} is refused with what is expected, as a bad request`, async ({
      assert,
    }) => {
      const refused: unknown = await app.engine
        .listRuns(query as never)
        .catch((reason: unknown) => reason)
      assert.propertyVal(refused, 'code', 'E_INVALID_OPTION')
      assert.propertyVal(refused, 'status', 400)
      assert.propertyVal(
        refused,
        'message',
        `Invalid option "${option}" of engine.listRuns(): got ${got}, expected ${expected}`
      )
    })
  }

  test('what is undefined was not given, and derived ids may be longer than names', async ({
    assert,
  }) => {
    const ids = [`${'p'.repeat(200)}.child.0`]
    const all = { status: undefined, limit: undefined, after: undefined, attributes: {} }
    const page = await app.engine.listRuns({ ...all, ids, parentId: ids[0], limit: 1_000 })
    assert.deepEqual(page, { runs: [], next: null })
  })
})
