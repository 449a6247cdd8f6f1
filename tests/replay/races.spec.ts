import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { Gate } from '../support/gate.ts'
import { until } from '../support/until.ts'
import { Deployments } from './deployments.ts'

test.group('Races', (group) => {
  let deployments: Deployments
  group.each.setup(() => {
    deployments = new Deployments()
    return () => deployments.close()
  })

  /** The winner of `race`, then a wait of an hour, so that the race is replayed. */
  const racing =
    (seen: unknown[], race: (ctx: WorkflowCtx) => Promise<unknown>) => async (ctx: WorkflowCtx) => {
      const winner = await race(ctx)
      seen.push(winner)
      await ctx.sleep('1h')
      return winner
    }

  test('a sleep that beat a step beats it on replay, however fast the step is by then (case 15, P3)', async ({
    assert,
  }) => {
    const gate = new Gate()
    const seen: unknown[] = []
    const main = racing(seen, (ctx) =>
      Promise.race([
        ctx.localStep('slow', () => gate.pass().then(() => 'step')),
        ctx.sleep('1s').then(() => 'sleep'),
      ])
    )
    await deployments.deploy({ main })
    await deployments.engine.start('main', undefined, 'run')
    await gate.reached()
    await deployments.engine.advanceClock(1_000)
    await until(() => deployments.database.history.live('run').length > 0)
    deployments.crash()
    gate.open()
    await deployments.deploy({ main })
    await deployments.rest()
    const run = await deployments.advance(3_600_000)
    assert.equal(run.output, 'sleep')
    assert.deepEqual(seen, ['sleep', 'sleep'])
    const records = await deployments.records()
    assert.deepEqual(
      records.toSorted((a, b) => a.ordinal! - b.ordinal!).map(({ name }) => name),
      ['sleep', 'slow', 'sleep']
    )
  })

  test('a step that beat a sleep beats it on replay, though the sleep is long over by then (case 15, P3)', async ({
    assert,
  }) => {
    const seen: unknown[] = []
    const main = racing(seen, (ctx) =>
      Promise.race([ctx.sleep('1s').then(() => 'sleep'), ctx.localStep('fast', () => 'step')])
    )
    await deployments.deploy({ main })
    await deployments.start()
    deployments.crash()
    await deployments.deploy({ main })
    const run = await deployments.advance(3_600_000)
    assert.equal(run.output, 'step')
    assert.deepEqual(seen, ['step', 'step'])
  })

  test('Promise.any, allSettled and a finally in a losing branch mean what they mean everywhere (P3)', async ({
    assert,
  }) => {
    const seen: unknown[] = []
    const main = racing(seen, async (ctx) => {
      const log: unknown[] = []
      const fails = (name: string) =>
        ctx.localStep(name, () => Promise.reject(new Error(name)), { retries: 0 })
      const branch = async () => {
        try {
          return await fails('a')
        } finally {
          log.push(await ctx.localStep('undo-a', () => 'undone'))
        }
      }
      const any = await Promise.any([branch(), fails('b'), ctx.localStep('c', () => 'c')])
      const settled = await Promise.allSettled([fails('d'), ctx.localStep('e', () => 'e')])
      const caught = await branch().catch((error: Error) => error.message)
      return { any, caught, settled: settled.map(({ status }) => status), undone: log.at(-1) }
    })
    await deployments.deploy({ main })
    await deployments.start()
    deployments.crash()
    await deployments.deploy({ main })
    const run = await deployments.advance(3_600_000)
    assert.equal(run.status, 'completed')
    assert.deepEqual(seen[0], seen[1])
    assert.deepEqual(run.output, {
      ...{ any: 'c', caught: 'a', undone: 'undone' },
      settled: ['rejected', 'fulfilled'],
    })
  })

  test('a sleep beside a long step is written at once, and can win while the step runs', async ({
    assert,
  }) => {
    const gate = new Gate()
    await deployments.deploy({
      main: (ctx) =>
        Promise.race([
          ctx.localStep('long', ({ signal }) => gate.pass(signal)),
          ctx.sleep('1m').then(() => 'sleep'),
        ]),
    })
    await deployments.engine.start('main', undefined, 'run')
    await gate.reached()
    const [wait] = await deployments.waits()
    assert.equal(wait!.kind, 'sleep')
    const run = await deployments.advance(60_000)
    assert.equal(run.output, 'sleep')
  })
})
