import { claimKey, suspectKey } from '../../src/core/name.ts'
import { internalsOf, type WorkflowEngine } from '../../src/engine/engine.ts'

const LEASE_MS = 1_000

/**
 * A worker that takes the run, begins a step and falls silent, `times` over: the next worker finds it with so many
 * pickups behind it, and the step still at work.
 */
export async function loseRun(
  engine: WorkflowEngine,
  params: { runId: string; step: string; times: number }
): Promise<void> {
  const { runId, step, times } = params
  const store = await internalsOf(engine).store()
  const run = await engine.getRun(runId)
  if (!run) throw new Error(`There is no run ${runId}`)
  const key = claimKey(run.namespace, run.workflow, run.version)
  const claimKeys = [key, suspectKey(key)]
  for (let time = 0; time < times; time++) {
    const instance = `lost-${runId}-${time}`
    const worker = { instance, name: instance, leaseMs: LEASE_MS, descriptor: '{}' }
    await store.registerWorker({ ...worker, takeOver: false })
    const [row] = await store.claim({ owner: instance, claimKeys, limit: 1 })
    if (row?.id !== runId) throw new Error(`Run ${runId} is not the one that is due`)
    const identity = { seq: 0, kind: 'local_step' as const, name: step, after: 0 }
    const nothing = {
      token: null,
      target: null,
      inputs: null,
      dueIn: null,
      dueAt: null,
      error: null,
      dispatch: null,
    }
    const changes = { records: [], closed: [], returned: [], children: [], signals: [] }
    await store.commit([
      {
        ...{ type: 'turn', runId, token: row.token, seenInbox: 0, ...changes },
        opened: [{ ...identity, ...nothing, attempts: 0 }],
        end: { kind: 'continue' },
      },
    ])
    await store.advanceClock(LEASE_MS + 1)
    await engine.recoverIncomplete()
  }
}
