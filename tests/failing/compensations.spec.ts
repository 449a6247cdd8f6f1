import { test } from '@japa/runner'
import { FatalError } from '../../src/errors.ts'
import { rowOf } from '../support/run_row.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { Gate } from '../support/gate.ts'
import { reaches } from '../support/reaches.ts'
import { until } from '../support/until.ts'
import { type Bodies, live, MAIN, Site, undone } from './site.ts'
import { UNDO, undoLater, undoSoon } from './undo_steps.ts'

const MINUTE = 60_000

onEach(KINDS, (kind) =>
  test.group(`Compensations, on ${kind}`, (group) => {
    let site: Site
    let calls: unknown[][]
    group.each.setup(async () => {
      site = await Site.on(kind)
      calls = []
      UNDO.reset()
      return () => site.close()
    })
    const undo = (name: string) => (output: unknown) => void calls.push([name, output])
    const fails = () => {
      throw new FatalError('no seats', 'sold_out')
    }

    test('run by closure and by step, the latest delivery first, and the run fails with its own error', async ({
      assert,
    }) => {
      const [slow, quick] = [new Gate(), new Gate()]
      UNDO.answer = ({ step }) => void calls.push([step])
      const { engine } = await site.working({
        main: async (ctx) => {
          await ctx.localStep('first', () => 'one', { compensate: undo('first') })
          const parallel = [slow, quick].map((gate, index) =>
            ctx.localStep(`parallel-${index}`, () => gate.pass().then(() => index), {
              compensate: undo(`parallel-${index}`),
            })
          )
          await Promise.all(parallel)
          await ctx.localStep('plain', () => 'not undone')
          await ctx.localStep('by-step', () => ({ id: 7 }), { compensate: undoSoon })
          await ctx.localStep('book', fails)
        },
      })
      const { runId } = await engine.start(MAIN)
      quick.open()
      await quick.reached()
      slow.open()
      const run = await engine.waitForRun(runId)
      assert.deepEqual(
        [run.status, run.errorCode, run.error?.message],
        ['failed', 'sold_out', 'no seats']
      )
      const delivered = await live(engine, runId)
      const parallel = delivered
        .filter(({ name }) => name.startsWith('parallel'))
        .filter(({ kind: what }) => what === 'local_step')
        .sort((a, b) => b.ordinal! - a.ordinal!)
        .map(({ name, seq }) => [name, seq - 1])
      assert.deepEqual(calls, [['soon'], ...parallel, ['first', 'one']])
      assert.deepEqual(UNDO.calls, [
        { step: 'soon', output: { id: 7 }, id: `${runId}:-5`, attempt: 1 },
      ])
    })

    test('are rows of the history beside what they undo, each with its own status and attempts; a spent one does not keep the others from running', async ({
      assert,
    }) => {
      UNDO.answer = ({ attempt }) => {
        if (UNDO.calls.length <= 3) throw new Error(`attempt ${attempt} fails`)
        if (attempt < 2) throw new Error('once more')
      }
      const { engine } = await site.working({
        main: async (ctx) => {
          await ctx.localStep('a', () => 1, { compensate: undo('a') })
          await ctx.localStep('b', () => 2, { compensate: undoSoon })
          await ctx.localStep('c', () => 3, { compensate: undoSoon })
          await ctx.localStep('d', fails)
        },
      })
      const { runId } = await engine.start(MAIN)
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.errorCode], ['failed', 'sold_out'])
      const records = await live(engine, runId)
      const shown = records.map(({ seq, kind: what, name, status, attempts }) => [
        ...[seq, what, name, status, attempts],
      ])
      assert.deepEqual(shown, [
        [-3, 'compensation', 'c', 'failed', 3],
        [-2, 'compensation', 'b', 'completed', 2],
        [-1, 'compensation', 'a', 'completed', 1],
        [0, 'local_step', 'a', 'completed', 1],
        [1, 'local_step', 'b', 'completed', 1],
        [2, 'local_step', 'c', 'completed', 1],
        [3, 'local_step', 'd', 'failed', 1],
      ])
      assert.include(records[0]?.error?.message, 'attempt 3 fails')
      assert.deepEqual(calls, [['a', 1]])
    })

    test('with a long back-off suspend the run, and nothing but time brings the next attempt', async ({
      assert,
    }) => {
      UNDO.answer = ({ attempt }) => {
        if (attempt < 3) throw new Error('not yet')
      }
      const { engine } = await site.working({
        main: async (ctx) => {
          await ctx.waitForSignal('go')
          await ctx.localStep('a', () => 1, { compensate: undo('a') })
          await ctx.localStep('b', () => 2, { compensate: undoLater })
          await ctx.localStep('d', fails)
        },
      })
      const { runId } = await engine.start(MAIN)
      await engine.signal('go')
      for (const attempt of [1, 2]) {
        await reaches(engine, runId, 'suspended')
        await until(() => UNDO.calls.length === attempt)
        await reaches(engine, runId, 'suspended')
        const { waits = [] } = (await engine.getHistory(runId)) ?? {}
        assert.deepEqual(
          waits.map((wait) => [wait.seq, wait.kind, wait.name, wait.attempts]),
          [[-3, 'compensation', 'b', attempt]]
        )
        const run = await rowOf(engine, runId)
        assert.deepEqual([run.phase, run.errorCode], ['unwinding', 'sold_out'])
        assert.isTrue(await engine.requeue(runId), 'made due')
        await until(async () => {
          const woken = await rowOf(engine, runId)
          return woken.status === 'suspended' && woken.token > run.token
        })
        assert.lengthOf(UNDO.calls, attempt, 'woken early, it attempts nothing')
        await engine.advanceClock(MINUTE)
      }
      const run = await engine.waitForRun(runId)
      assert.deepEqual([run.status, run.errorCode], ['failed', 'sold_out'])
      assert.deepEqual(await undone(engine, runId), [
        ['b', 'completed', 3],
        ['a', 'completed', 1],
      ])
    })

    test('go on in another process when theirs falls silent: each is recorded once (P1)', async ({
      assert,
      cleanup,
    }) => {
      const stuck = new Gate()
      cleanup(() => stuck.open())
      const bodies = (second: (output: unknown) => unknown): Bodies => ({
        main: async (ctx) => {
          await ctx.localStep('a', () => 1, { compensate: undo('a') })
          await ctx.localStep('b', () => 2, { compensate: second })
          await ctx.localStep('c', () => 3, { compensate: undo('c') })
          await ctx.localStep('d', fails)
        },
      })
      const silent = await site.working(bodies(() => stuck.pass()))
      const { runId } = await silent.engine.start(MAIN)
      await stuck.reached()
      const other = await site.working(bodies(undo('b')), { leaseMs: 100, hangMs: 1_000 })
      await other.engine.advanceClock(MINUTE)
      const run = await other.engine.waitForRun(runId)
      stuck.open()
      await site.stop(silent.app)
      assert.equal(run.status, 'failed')
      assert.deepEqual(calls, [
        ['c', 3],
        ['b', 2],
        ['a', 1],
      ])
      assert.deepEqual(await undone(other.engine, runId), [
        ['c', 'completed', 1],
        ['b', 'completed', 1],
        ['a', 'completed', 1],
      ])
    })
  })
)
