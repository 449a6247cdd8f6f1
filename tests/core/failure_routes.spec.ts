import { test } from '@japa/runner'
import { decideRoute } from '../../src/core/failure_routes.ts'
import { UNROUTED_CODES } from '../../src/errors.ts'

const ROUTES = [
  { code: 'invalid_line', workflow: 'fix-line' },
  { code: 'invalid_input', workflow: 'fix-input' },
  { code: 'schema_validation', workflow: 'fix-schema' },
  { code: null, workflow: 'anything' },
]
const CODED = ROUTES.filter(({ code }) => code !== null)

test.group('Failure routes', () => {
  test('{title}: {handler}, tagged {tag}')
    .with([
      {
        title: 'the route of the code wins over the catch-all (OE-2)',
        ...{
          code: 'invalid_line',
          routes: ROUTES,
          handler: 'fix-line',
          tag: 'onError:invalid_line',
        },
      },
      {
        title: 'an unknown code is taken by the catch-all (OE-4)',
        ...{ code: 'other', routes: ROUTES, handler: 'anything', tag: 'onError:*' },
      },
      {
        title: 'an error without a code is taken by the catch-all',
        ...{ code: undefined, routes: ROUTES, handler: 'anything', tag: 'onError:*' },
      },
      {
        title: 'a schema failure with a route of its own (OE-21)',
        ...{
          code: 'invalid_input',
          routes: ROUTES,
          handler: 'fix-input',
          tag: 'onError:invalid_input',
        },
      },
      {
        title: 'a schema failure without one goes to schema_validation (OE-21)',
        ...{ code: 'invalid_output', routes: ROUTES },
        ...{ handler: 'fix-schema', tag: 'onError:schema_validation' },
      },
      {
        title: 'schema_validation itself (OE-21)',
        ...{ code: 'schema_validation', routes: ROUTES },
        ...{ handler: 'fix-schema', tag: 'onError:schema_validation' },
      },
      {
        title: 'a step that timed out (OE-9)',
        ...{ code: 'step_timeout', routes: ROUTES, handler: 'anything', tag: 'onError:*' },
      },
      {
        title: 'a child that was cancelled',
        ...{ code: 'cancelled', routes: ROUTES, handler: 'anything', tag: 'onError:*' },
      },
    ])
    .run(({ assert }, { code, routes, handler, tag }) => {
      const decision = decideRoute({ code, routes, chain: ['import'] })
      assert.equal(decision.kind, 'follow')
      if (decision.kind !== 'follow') return
      assert.deepEqual([decision.route.workflow, decision.tag], [handler, tag])
    })

  test('{$self}: taken by nobody, the catch-all included (OE-10)')
    .with([...UNROUTED_CODES])
    .run(({ assert }, code) => {
      assert.deepEqual(decideRoute({ code, routes: ROUTES, chain: ['import'] }), { kind: 'none' })
      const own = [{ code, workflow: 'fix' }]
      assert.deepEqual(decideRoute({ code, routes: own, chain: ['import'] }), { kind: 'none' })
    })

  test('a code that no route names, without a catch-all, is not routed', ({ assert }) => {
    for (const code of ['other', undefined])
      assert.deepEqual(decideRoute({ code, routes: CODED, chain: [] }), { kind: 'none' })
    assert.deepEqual(decideRoute({ code: 'any', routes: [], chain: [] }), { kind: 'none' })
  })

  test('a handler in the chain that led here is not started again, and the reason shows the way (OE-12)', ({
    assert,
  }) => {
    for (const chain of [['anything'], ['import', 'anything'], ['anything', 'import']]) {
      const decision = decideRoute({ code: 'other', routes: ROUTES, chain })
      assert.equal(decision.kind, 'unrouted')
      if (decision.kind === 'unrouted')
        assert.include(decision.reason, [...chain, 'anything'].join(' -> '))
    }
  })

  test('a matching route that loops is not replaced by the catch-all', ({ assert }) => {
    const decision = decideRoute({ code: 'invalid_line', routes: ROUTES, chain: ['fix-line'] })
    assert.equal(decision.kind, 'unrouted')
  })
})
