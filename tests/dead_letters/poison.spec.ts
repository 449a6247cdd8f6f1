import { test } from '@japa/runner'
import { SQL_KINDS } from '../stores/databases.ts'
import { HANGING, HEALTHY, POISON, type HealthyInput } from './poison_workflows.ts'
import { type Order, Supervisor } from './supervisor.ts'

const HEALTHY_RUNS = 100
const OPTIONS = { leaseMs: 1_500, hangMs: 60_000, pollMs: 50, idlePollMs: 200 }

interface Trial {
  cap: number
  processes: number
  poisons: number
  healthy: HealthyInput
  concurrency?: number
}

for (const kind of SQL_KINDS)
  test.group(`Poison runs among healthy ones (${kind})`, (group) => {
    let supervisor: Supervisor
    group.each.setup(async () => {
      supervisor = await Supervisor.on(kind)
      return () => supervisor.close()
    })

    /** Starts poison runs amidst healthy ones, lets supervised processes have them all, and waits for every end. */
    async function trial(
      { cap, processes, poisons, healthy, concurrency = 150 }: Trial,
      { workflow = POISON, order = {} }: { workflow?: typeof POISON; order?: Order } = {}
    ) {
      const { engine } = supervisor
      const healthyIds = Array.from({ length: HEALTHY_RUNS }, (_, index) => `healthy-${index}`)
      const poisonIds = Array.from({ length: poisons }, (_, index) => `poison-${index}`)
      const every = Math.floor(HEALTHY_RUNS / poisons)
      for (const [index, id] of healthyIds.entries()) {
        if (index % every === 0) {
          const poison = poisonIds[index / every]
          if (poison) await engine.start(workflow, null, poison)
        }
        await engine.start(HEALTHY, healthy, id)
      }
      const options = { ...OPTIONS, maxRecoveryAttempts: cap, ...order.options }
      const from = performance.now()
      supervisor.supervise(processes, { ...order, concurrency, options })
      const ended = {
        healthy: await Promise.all(healthyIds.map((id) => supervisor.ended(id))),
        poison: await Promise.all(poisonIds.map((id) => supervisor.ended(id))),
        handlers: await Promise.all(poisonIds.map((id) => supervisor.ended(`dlq:${id}`))),
      }
      const seconds = ((performance.now() - from) / 1_000).toFixed(1)
      const most = Math.max(...ended.healthy.map(({ recoveryAttempts }) => recoveryAttempts))
      const dead = ended.healthy.filter(({ status }) => status === 'dead').length
      console.log(
        `DL-11 ${kind}, ${workflow.name}: cap ${cap}, processes ${processes}, poison runs ${poisons}, ` +
          `${concurrency} at once, sleep ${healthy.sleepMs} ms: ${dead} healthy runs dead of ${HEALTHY_RUNS} ` +
          `(recoveries at most ${most}), restarts ${supervisor.restarts}, ${seconds} s`
      )
      return ended
    }

    const trials: Trial[] = []
    for (const cap of [3, 5])
      for (const processes of [1, 3])
        for (const poisons of [1, 3])
          trials.push({ cap, processes, poisons, healthy: { workMs: 20, sleepMs: 0 } })
    trials.push(
      { cap: 3, processes: 1, poisons: 1, healthy: { workMs: 20, sleepMs: 20 } },
      { cap: 3, processes: 1, poisons: 3, healthy: { workMs: 20, sleepMs: 20 } },
      { cap: 3, processes: 3, poisons: 3, healthy: { workMs: 20, sleepMs: 20 }, concurrency: 20 }
    )

    for (const { healthy, ...terms } of trials)
      test(`DL-11: cap ${terms.cap}, ${terms.processes} processes, ${terms.poisons} poison runs, ${terms.concurrency ?? 150} at once, healthy ones that sleep ${healthy.sleepMs} ms: all 100 complete, the poison ones end dead with the step's name`, async ({
        assert,
      }) => {
        const ended = await trial({ ...terms, healthy })
        assert.deepEqual(
          ended.healthy.filter(({ status }) => status !== 'completed').map(({ id }) => id),
          []
        )
        for (const run of ended.poison) {
          assert.equal(run.status, 'dead', run.id)
          assert.equal(run.error?.code, 'max_recovery_attempts')
          assert.include(run.error?.message, '"kill"')
          assert.notInclude(run.error?.message, '"prepare"')
        }
        for (const run of ended.handlers) assert.equal(run.status, 'completed', run.id)
        assert.deepEqual(await supervisor.engine.findStranded(), [])
      }).timeout(120_000)

    test('DL-11: a run that blocks the event loop for ever ends dead with the name of its step, and harms no other', async ({
      assert,
    }) => {
      const ended = await trial(
        { cap: 3, processes: 1, poisons: 1, healthy: { workMs: 20, sleepMs: 0 } },
        { workflow: HANGING, order: { watchdog: true, options: { leaseMs: 600, hangMs: 900 } } }
      )
      assert.isTrue(ended.healthy.every(({ status }) => status === 'completed'))
      const [run] = ended.poison
      assert.equal(run?.status, 'dead')
      assert.include(run?.error?.message, '"hang"')
      assert.deepEqual(await supervisor.engine.findStranded(), [])
    }).timeout(120_000)
  })
