import { test } from '@japa/runner'
import { compareVersions } from '../../src/core/version_order.ts'

test.group('Version order', () => {
  test('{$self} are in order')
    .with([
      ['1', '2', '9', '10', '100'],
      ['1', '1.1', '1.9', '1.10', '2', '2-beta', '2.0.1'],
      ['v1', 'v2', 'v10'],
      ['2024-9-30', '2024-10-01', '2025-01-01'],
      ['9'.repeat(30), `1${'0'.repeat(30)}`],
    ])
    .run(({ assert }, versions) => {
      assert.deepEqual(versions.toReversed().toSorted(compareVersions), versions)
    })

  test('leading zeros change nothing', ({ assert }) => {
    assert.equal(compareVersions('2024-09', '2024-9'), 0)
    assert.isBelow(compareVersions('007', '8'), 0)
  })
})
