import { setTimeout as delay } from 'node:timers/promises'
import { isTerminal } from '../../src/core/run.ts'
import type { WorkflowEngine } from '../../src/engine/engine.ts'
import type { DeadLetter } from '../../src/types/workflow.ts'
import { DyingProcesses } from '../support/dying_processes.ts'
import { processApp } from '../support/process_app.ts'
import { type Effect, reached, type Scenario } from './scenario.ts'

const CAP = 3
const DOOMED = { name: 'doomed', version: '1' }
/** After which a handler run starts though nobody has made it due, in ms. */
const HANDLER_DELAY_MS = 5_000

function registerParent(engine: WorkflowEngine, effect: Effect): void {
  engine.register('parent', '1', async (ctx) => {
    const failure = await ctx.child(DOOMED, null).catch((error: { code?: string }) => error.code)
    await ctx.localStep('after', effect)
    return failure
  })
}

/** The handler run of a dead one, once it has ended. If its process died before it was due, time makes it due. */
async function handled(engine: WorkflowEngine, runId: string): Promise<void> {
  for (let looks = 0; ; looks++) {
    const run = await engine.getRun(runId)
    if (run && isTerminal(run.status)) return
    if (run?.status === 'pending' && looks === 0) await engine.advanceClock(HANDLER_DELAY_MS)
    await delay(1)
  }
}

/** A child was lost as often as it may be, and is lost again: its next pickup is its death, of which its parent hears. */
export const dying: Scenario = {
  options: { maxRecoveryAttempts: CAP },
  async prepare(store) {
    const app = processApp(store)
    const { engine } = app
    registerParent(engine, () => {})
    const worker = await app.work({ name: 'first' })
    await engine.start({ name: 'parent', version: '1' }, null, 'p')
    await reached(engine, 'p', 'suspended')
    await worker.stop()
    const processes = new DyingProcesses(store, { cap: CAP })
    for (let pickup = 0; pickup <= CAP; pickup++) await processes.takeAndDie(DOOMED.name)
    await app.close()
  },
  register(engine, effect) {
    registerParent(engine, effect)
    engine.register('bury', '1', (ctx, { deadRunId }: DeadLetter) =>
      ctx.localStep('note', (step) => {
        effect(step)
        return deadRunId
      })
    )
    engine.register(DOOMED.name, DOOMED.version, (ctx) => ctx.localStep('work', effect), {
      deadLetterWorkflow: 'bury',
    })
    engine.onDead(() => {})
  },
  async drive(engine) {
    await engine.waitForRun('p')
    await handled(engine, 'dlq:p.child.0')
  },
  outcomes: {
    'p': { output: 'max_recovery_attempts' },
    'p.child.0': { failed: 'max_recovery_attempts' },
    'dlq:p.child.0': { output: 'p.child.0' },
  },
}
