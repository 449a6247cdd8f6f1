import { test } from '@japa/runner'
import { isInFlight } from '../../src/core/dispatch.ts'
import { CRASH_MOMENTS } from '../../src/testing/crash_store.ts'
import { eachWrite, type KillAttempt } from '../support/each_write.ts'
import { rowOf } from '../support/run_row.ts'
import { SQL_KINDS } from '../stores/databases.ts'
import { reaches } from '../support/reaches.ts'
import { Coordinators } from './coordinators.ts'

const HOUR_MS = 3_600_000
const CAP = 3

for (const kind of SQL_KINDS)
  test.group(`Dispatched steps of processes that are killed (${kind})`, (group) => {
    group.each.timeout(60_000)
    let stage: Coordinators
    group.each.setup(async () => {
      const options = { leaseMs: 600, reconcileMs: HOUR_MS, maxRecoveryAttempts: CAP }
      stage = await Coordinators.on(kind, options)
      return () => stage.close()
    })

    /** A run that is lost while a local step of it is at work and its other step is in flight. */
    async function loseBeside() {
      await stage.begin('beside', 'r')
      const process = stage.start('first', { hangs: true })
      const message = await stage.broker.next()
      await process.localBegan
      await process.kill()
      return message
    }

    const SUCCESSORS = [
      { who: 'another process', name: 'second' },
      { who: 'a process of the same name', name: 'first' },
    ]
    for (const { who, name } of SUCCESSORS) {
      test(`DL-5: a run lost while a step of it is in flight is parked, uncounted, until the deadline of that, and ${who} resumes it with the result`, async ({
        assert,
      }) => {
        const message = await loseBeside()
        const lost = await rowOf(stage.engine, 'r')
        assert.deepEqual([lost.status, lost.parkedAt], ['running', null])
        const successor = stage.start(name)
        await reaches(stage.engine, 'r', 'suspended')
        await successor.working
        const parked = await rowOf(stage.engine, 'r')
        const history = await stage.engine.getHistory('r')
        const deadlines = history?.waits.map(({ dueAt }) => dueAt)
        assert.deepEqual([parked.owner, parked.recoveryAttempts], [null, 0])
        assert.isNotNull(parked.parkedAt)
        assert.deepEqual(deadlines, [parked.dueAt])
        assert.equal(await stage.broker.complete(message, 'done'), 'stored')
        const run = await stage.engine.waitForRun('r')
        assert.deepEqual(run.output, ['done', 'local'])
        assert.equal(run.recoveryAttempts, 0)
        assert.lengthOf(stage.broker.sent, 1)
      })

      test(`DL-5: a result that comes while no process lives resumes the run in ${who}, uncounted`, async ({
        assert,
      }) => {
        const message = await loseBeside()
        const receipt = stage.broker.complete(message, 'done')
        const successor = stage.start(name)
        assert.equal(await receipt, 'stored')
        const run = await stage.engine.waitForRun('r')
        await successor.working
        assert.deepEqual(run.output, ['done', 'local'])
        assert.equal(run.recoveryAttempts, 0)
        assert.lengthOf(stage.broker.sent, 1)
      })
    }

    test('DL-5: however often processes die while nothing but a dispatched step is under way, the run is not counted', async ({
      assert,
    }) => {
      await stage.begin('remote', 'r')
      const first = stage.start('p0')
      const message = await stage.broker.next()
      await reaches(stage.engine, 'r', 'suspended')
      await first.kill()
      for (let life = 1; life <= CAP + 1; life++) {
        const next = stage.start(`p${life}`)
        await next.working
        await next.kill()
      }
      const receipt = stage.broker.complete(message, 'done')
      stage.start('last')
      assert.equal(await receipt, 'stored')
      const run = await stage.engine.waitForRun('r')
      assert.deepEqual([run.output, run.recoveryAttempts], ['done', 0])
      assert.lengthOf(stage.broker.sent, 1)
    })

    test('DL-5: a local step that kills its process beside an endless remote step ends dead, and is named', async ({
      assert,
    }) => {
      await stage.begin('killer', 'r')
      const options = {
        ...{ pollMs: 20, idlePollMs: 50, maxRecoveryAttempts: CAP },
        ...{ reconcileMs: 200, redispatchMax: 1_000 },
      }
      let kills = 0
      let isDead = false
      const ended = stage.engine.waitForRun('r').then((run) => {
        isDead = true
        return run
      })
      while (!isDead) {
        const process = stage.start('killer', { options })
        await Promise.race([process.ended(), ended])
        if (process.killedBy === 'SIGKILL') kills++
        else if (!isDead) throw new Error(process.output)
      }
      const run = await ended
      assert.equal(run.status, 'dead')
      assert.equal(run.error?.code, 'max_recovery_attempts')
      assert.deepEqual(run.error?.details, { lost: CAP + 1, steps: [{ seq: 1, name: 'kill' }] })
      // Once while it was first executed, once when it was parked and not counted, and at each pickup that was counted.
      assert.equal(kills, CAP + 2)
    })

    test('a process that dies between the commit of a wait and the sending leaves it to the deadline', async ({
      assert,
    }) => {
      await stage.begin('remote', 'r')
      // It announces itself, claims the run, and opens the wait.
      const process = stage.start('first', { point: { moment: 'answered', write: 3 } })
      await process.ended()
      assert.equal(process.killedBy, 'SIGKILL')
      assert.deepEqual(stage.broker.sent, [])
      const history = await stage.engine.getHistory('r')
      const lost = history?.waits[0]?.dispatch
      assert.equal(lost?.redispatches, 0)
      const successor = stage.start('second')
      await successor.working
      await stage.engine.advanceClock(HOUR_MS)
      const message = await stage.broker.next()
      assert.equal(message.stepId, 'r:0')
      assert.deepEqual([message.attempt, message.generation], [1, lost?.generation])
      assert.notEqual(message.dispatchId, lost?.id)
      await stage.broker.complete(message, 'done')
      const run = await stage.engine.waitForRun('r')
      assert.deepEqual([run.output, run.recoveryAttempts], ['done', 0])
    })

    for (const moment of CRASH_MOMENTS)
      test(`DL-5: killed ${moment} each write of a run with a dispatched step, it comes to its end under one step id, and is not counted once that is in flight`, async ({
        assert,
      }) => {
        let inFlight = 0
        const attempt = async ({ write, id: runId }: KillAttempt) => {
          await stage.begin('remote', runId)
          const process = stage.start('first', { point: { moment, write } })
          const sent = () => stage.broker.sent.filter((message) => message.runId === runId)
          const answered = stage.broker.next().then((message) => stage.broker.complete(message, 1))
          await Promise.race([process.ended(), stage.engine.waitForRun(runId)])
          const writes = await process.writes()
          const isKilled = writes === null
          const killed = await stage.engine.getHistory(runId)
          const wasInFlight = isKilled && killed?.waits.some(isInFlight)
          if (wasInFlight) inFlight++
          const successor = isKilled ? stage.start('first') : process
          if (isKilled) {
            await successor.working
            if (sent().length === 0) await stage.engine.advanceClock(HOUR_MS)
          }
          await answered
          const run = await stage.engine.waitForRun(runId)
          const at = `${moment} write ${write}`
          assert.equal(run.output, 1, at)
          assert.isAtMost(run.recoveryAttempts, wasInFlight ? 0 : 1, at)
          const history = await stage.engine.getHistory(runId)
          assert.lengthOf(history?.records ?? [], 1, at)
          assert.deepEqual(new Set(sent().map(({ stepId }) => stepId)), new Set([`${runId}:0`]), at)
          await successor.kill()
          return writes
        }
        assert.isAbove(await eachWrite(attempt), 3)
        assert.isAbove(inFlight, 0)
      }).timeout(180_000)
  })
