import { test } from '@japa/runner'
import type { RunStanding } from '../../src/contracts/store.ts'
import type { RunRow } from '../../src/core/run.ts'
import { created } from '../../src/core/transition.ts'
import { newRun } from '../../src/testing/conformance/writes.ts'
import { LeaseCheck } from '../../src/worker/lease_check.ts'

const LEASE_MS = 1_000

function standing(runId: string, token = 1): RunStanding {
  const { claimKey } = newRun(runId)
  return { runId, claimKey, status: 'running', phase: 'body', token, errorCode: null }
}

function executed(id: string, token = 1): RunRow {
  return { ...created(newRun(id), { leaseTo: 'w1', now: 0 }), token }
}

/** A worker and its store, as the check sees them. */
class Scene {
  now = 0
  owner = 'w1'
  held: RunStanding[] = []
  standings: RunStanding[] = []
  executing: RunRow[] = []
  /** Runs that have a slot and are not executed yet, or not any more. */
  waiting: string[] = []
  released: [string, number][] = []
  /** Of the runs that cannot be released. */
  unwritable: string[] = []
  /** Runs, each with the code of its abort. */
  discarded: [string, string][] = []
  warnings: string[] = []
  asked = 0
  /** Called while the store is asked. */
  meanwhile: () => void = () => {}
  readonly check = new LeaseCheck({
    store: {
      heldBy: async () => {
        this.meanwhile()
        return this.held
      },
      statusesOf: async () => {
        this.asked++
        return this.standings
      },
    },
    lease: this,
    runs: {
      executing: () => this.executing,
      occupying: () => new Set([...this.executing.map(({ id }) => id), ...this.waiting]),
      discardRun: (runId, { token, reason }) => {
        const row = this.executing.find(({ id }) => id === runId)
        if (row && row.token < token) this.discarded.push([runId, reason.code])
      },
    },
    leaseMs: LEASE_MS,
    release: async ({ runId, token }) => {
      if (this.unwritable.includes(runId)) throw new Error('no')
      this.released.push([runId, token])
    },
    log: { warn: (...args: unknown[]) => void this.warnings.push(String(args.at(-1))) },
    monotonic: () => this.now,
  })

  async look({ after }: { after: number }): Promise<void> {
    this.now += after
    await this.check.runOnce()
  }
}

test.group('What a worker holds and what it executes', () => {
  test('a run is released that was held for a whole lease without being executed (P4)', async ({
    assert,
  }) => {
    const scene = new Scene()
    scene.held = [standing('r', 3)]
    await scene.look({ after: 0 })
    await scene.look({ after: LEASE_MS - 1 })
    assert.deepEqual(scene.released, [])
    await scene.look({ after: 1 })
    assert.deepEqual(scene.released, [['r', 3]])
    assert.match(scene.warnings.join(), /"r"/)
  })

  test('a run that cannot be released keeps no other from it, and is tried again after another lease', async ({
    assert,
  }) => {
    const scene = new Scene()
    scene.held = [standing('bad'), standing('good')]
    scene.unwritable = ['bad']
    await scene.look({ after: 0 })
    await scene.look({ after: LEASE_MS })
    assert.deepEqual(scene.released, [['good', 1]])
    assert.match(scene.warnings.join(), /"bad".* could not be released/)
    scene.held = [standing('bad')]
    scene.unwritable = []
    await scene.look({ after: LEASE_MS - 1 })
    assert.lengthOf(scene.released, 1)
    await scene.look({ after: 1 })
    assert.deepEqual(scene.released.at(-1), ['bad', 1])
  })

  test('a run that was claimed again meanwhile has a whole lease again', async ({ assert }) => {
    const scene = new Scene()
    scene.held = [standing('r', 3)]
    await scene.look({ after: 0 })
    scene.held = [standing('r', 5)]
    await scene.look({ after: LEASE_MS })
    assert.deepEqual(scene.released, [])
  })

  test('what has a slot is not released, executed or not', async ({ assert }) => {
    const scene = new Scene()
    scene.held = [standing('r'), standing('loading')]
    scene.executing = [executed('r')]
    scene.waiting = ['loading']
    for (let look = 0; look < 3; look++) await scene.look({ after: LEASE_MS })
    assert.deepEqual([scene.released, scene.discarded, scene.asked], [[], [], 0])
  })

  test('a run that was taken away is discarded', async ({ assert }) => {
    const scene = new Scene()
    scene.executing = [executed('r', 2), executed('mine')]
    scene.held = [standing('mine')]
    scene.standings = [standing('r', 3)]
    await scene.look({ after: 0 })
    assert.deepEqual(scene.discarded, [['r', 'lease_lost']])
  })

  test('a run that was cancelled is discarded as that, also where it undoes its steps first', async ({
    assert,
  }) => {
    const cancelled = { token: 2, errorCode: 'cancelled' }
    const unwinding = { ...cancelled, phase: 'unwinding' } as const
    const scene = new Scene()
    scene.executing = ['over', 'late', 'waits', 'at work'].map((id) => executed(id))
    scene.standings = [
      { ...standing('over'), ...cancelled, status: 'cancelled' },
      { ...standing('late'), token: 2, errorCode: 'execution_timeout', status: 'cancelled' },
      { ...standing('waits'), ...unwinding, status: 'suspended' },
      { ...standing('at work'), ...unwinding },
    ]
    await scene.look({ after: 0 })
    assert.deepEqual(
      scene.discarded,
      scene.executing.map(({ id }) => [id, 'cancelled'])
    )
  })

  test('a run that had been cancelled before, and that another worker undoes now, is lost', async ({
    assert,
  }) => {
    const unwinding = { phase: 'unwinding', errorCode: 'cancelled' } as const
    const scene = new Scene()
    scene.executing = [{ ...executed('r', 2), ...unwinding }]
    scene.standings = [{ ...standing('r', 3), ...unwinding }]
    await scene.look({ after: 0 })
    assert.deepEqual(scene.discarded, [['r', 'lease_lost']])
  })

  test('a run that has just left under its own lease is not discarded', async ({ assert }) => {
    const scene = new Scene()
    scene.executing = [executed('r', 2)]
    scene.standings = [{ ...standing('r', 2), status: 'suspended' }]
    await scene.look({ after: 0 })
    assert.deepEqual(scene.discarded, [])
  })

  test('nothing is concluded from an answer about an instance that was lost meanwhile', async ({
    assert,
  }) => {
    const scene = new Scene()
    scene.executing = [executed('r')]
    scene.standings = [standing('r', 2)]
    scene.meanwhile = () => (scene.owner = 'w2')
    await scene.look({ after: 0 })
    assert.deepEqual(scene.discarded, [])
  })
})
