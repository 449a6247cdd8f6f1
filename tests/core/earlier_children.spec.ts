import { test } from '@japa/runner'
import { type EarlierChild, EarlierChildren, recordOf } from '../../src/core/earlier_children.ts'
import { hashOf } from '../../src/core/hash.ts'

test.group('Earlier children', () => {
  test('there may be more of them than a payload of a user has room for', ({ assert }) => {
    const children = Array.from({ length: 10_000 }, (_, index): EarlierChild => ({
      ...{ id: `import.child.4.${index}`, seq: 4, index, workflow: 'import.line' },
      inputHash: hashOf(String(index)),
    }))
    const stored = { generation: 0, token: 1, startedAt: 0, endedAt: 0 }
    const earlier = new EarlierChildren([{ ...recordOf(children, 0), ...stored }])
    const call = { seq: 4, index: 9_999, workflow: 'import.line', suffix: '.child.4.9999' }
    assert.equal(earlier.idOf('import', { ...call, input: '9999' }), 'import.child.4.9999')
    assert.equal(earlier.idOf('import', { ...call, input: 'new' }), 'import.child.4.9999~1')
  })
})
