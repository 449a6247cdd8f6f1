import { test } from '@japa/runner'
import { describeWaiting, describeWorker } from '../../src/worker/worker_description.ts'

const worker = {
  name: 'host:1',
  pid: 7,
  workflows: ['a@1'],
  namespaces: ['default'],
  store: 'connection "main" (pg)',
  concurrency: 50,
}

test.group('Worker description', () => {
  test('names worker, process, store, concurrency and workflows', ({ assert }) => {
    assert.equal(
      describeWorker(worker),
      'durable worker "host:1" (pid 7), store: connection "main" (pg), up to 50 runs at once, 1 workflow: a@1'
    )
  })

  test('names namespaces that are not the default', ({ assert }) => {
    const line = describeWorker({ ...worker, namespaces: ['blue', 'green'] })
    assert.include(line, '1 workflow of blue, green: a@1')
  })

  test('of many workflows names 20 and the number of the others', ({ assert }) => {
    const workflows = Array.from({ length: 23 }, (_, index) => `w${index}@1`)
    const line = describeWorker({ ...worker, workflows })
    assert.match(line, /23 workflows: w0@1, .*w19@1 and 3 more$/)
  })

  test('waiting is in seconds, rounded up', ({ assert }) => {
    assert.equal(describeWaiting(1_001), 'waiting: the next run is due in 2 s')
    assert.equal(describeWaiting(null), 'waiting: no run is due')
  })
})
