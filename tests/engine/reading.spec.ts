import { test } from '@japa/runner'
import type { RunSummary } from '../../src/core/run.ts'
import { encodeError } from '../../src/core/serialized_error.ts'
import type { WorkflowRun } from '../../src/engine/workflow_run.ts'
import { E_UNREADABLE_PAYLOAD } from '../../src/errors.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { record, sleep, startLeased, turn } from '../../src/testing/conformance/writes.ts'
import { DurableApp } from '../support/durable_app.ts'

const BROKEN = '{"v":'
const SOLD_OUT = { name: 'FatalError', message: 'none left', code: 'sold_out' }
const UNREADABLE = {
  name: 'Exception',
  message:
    'Cannot read a stored payload: it is not JSON. It was written by another program or a later version of this package. ' +
    'Run the version that wrote it, or restore the row',
  code: 'E_UNREADABLE_PAYLOAD',
  details: BROKEN,
}

test.group('Reading runs', (group) => {
  let app: DurableApp
  let store: MemoryStore
  group.each.setup(() => {
    store = new MemoryStore(new MemoryDatabase())
    app = new DurableApp({ store })
    return () => app.close()
  })

  test('a run shows what is of use to applications, and nothing that only the engine needs', async ({
    assert,
    expectTypeOf,
  }) => {
    const { engine } = app
    engine.register('read', '1', () => 'output')
    await app.work()
    const { runId } = await engine.start('read')
    const ended = await engine.waitForRun(runId)
    const listed = [
      ...['id', 'workflow', 'version', 'namespace', 'origin', 'status', 'phase', 'priority'],
      ...['dueAt', 'owner', 'recoveryAttempts', 'parent', 'handles', 'routeChain', 'handoffs'],
      ...['deadlineAt', 'errorCode', 'createdAt', 'startedAt', 'updatedAt', 'endedAt'],
    ]
    const shown = [...listed, 'input', 'output', 'error', 'tags', 'attributes']
    assert.sameMembers(Object.keys(ended), shown)
    assert.deepEqual(await engine.getRun(runId), ended)
    const { runs } = await engine.listRuns()
    assert.sameMembers(Object.keys(runs[0]!), listed)
    type Internal = 'claimKey' | 'token' | 'inboxSeq' | 'wakeSeq' | 'parkedAt' | 'createdBy'
    expectTypeOf<Extract<keyof WorkflowRun, Internal>>().toBeNever()
    expectTypeOf<Extract<keyof RunSummary, Internal | 'format'>>().toBeNever()
  })

  test('getHistory gives the values and the failures that were recorded', async ({ assert }) => {
    const error = encodeError(SOLD_OUT)
    await store.commit([
      startLeased('r'),
      turn(
        { id: 'r', token: 1 },
        {
          records: [
            record(0, { output: '{"v":{"lines":3}}' }),
            record(1, { status: 'failed', output: null, error }),
          ],
          opened: [{ ...sleep(2, 1_000), kind: 'local_step', attempts: 1, error }],
          end: { kind: 'suspend', needs: null, dueAt: null, dueIn: null },
        }
      ),
    ])
    const history = await app.engine.getHistory('r')
    const [done, failed] = history?.records ?? []
    assert.deepEqual(done?.output, { lines: 3 })
    assert.notProperty(done, 'error')
    assert.deepEqual(failed?.error, SOLD_OUT)
    assert.notProperty(failed, 'output')
    assert.deepEqual(history?.waits[0]?.error, SOLD_OUT)
    assert.isNull(await app.engine.getHistory('unknown'))
  })

  test('a run and a history whose payloads cannot be read are given with the stored texts (P8)', async ({
    assert,
  }) => {
    const { engine } = app
    await store.commit([
      startLeased('output', { input: BROKEN }),
      startLeased('error'),
      turn(
        { id: 'output', token: 1 },
        { records: [record(0, { output: BROKEN })], end: { kind: 'complete', output: BROKEN } }
      ),
      turn(
        { id: 'error', token: 1 },
        {
          records: [record(0, { status: 'failed', output: null, error: BROKEN })],
          end: { kind: 'fail', error: BROKEN, errorCode: 'sold_out' },
        }
      ),
    ])
    const completed = await engine.getRun('output')
    assert.deepEqual([completed?.input, completed?.output], [BROKEN, BROKEN])
    const failed = await engine.waitForRun('error')
    assert.deepEqual(failed.error, UNREADABLE)
    const [output, error] = await Promise.all(
      ['output', 'error'].map((runId) => engine.getHistory(runId))
    )
    assert.equal(output?.records[0]?.output, BROKEN)
    assert.deepEqual(error?.records[0]?.error, UNREADABLE)
  })

  test('a result that cannot be read is E_UNREADABLE_PAYLOAD, not the stored text', async ({
    assert,
  }) => {
    const { engine } = app
    const ref = engine.register('import', '1', async () => 'done')
    await store.commit([
      startLeased('r'),
      turn({ id: 'r', token: 1 }, { end: { kind: 'complete', output: BROKEN } }),
    ])
    const handle = await engine.start(ref, undefined, 'r')
    const refused: unknown = await handle.result().catch((reason: unknown) => reason)
    assert.instanceOf(refused, E_UNREADABLE_PAYLOAD)
  })
})
