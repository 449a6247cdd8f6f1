import type { WorkflowEngine } from '../../src/engine/engine.ts'

/** Only a process that was forked for it dies: the one that runs the tests would take them all with it. */
function killThisProcess(): void {
  if (!process.send) throw new Error('The killer was executed by the process that runs the tests')
  process.kill(process.pid, 'SIGKILL')
}

/** Runs whose step `work` is executed elsewhere: alone, beside a local step, and beside one that kills its process. */
export function registerCoordinated(
  engine: WorkflowEngine,
  { hangs, onLocal }: { hangs: boolean; onLocal: () => void }
): void {
  engine.register('remote', '1', (ctx) => ctx.step('work', null))
  engine.register('beside', '1', (ctx) => {
    const local = () => {
      onLocal()
      return hangs ? new Promise(() => {}) : 'local'
    }
    return Promise.all([ctx.step('work', null), ctx.localStep('local', local)])
  })
  engine.register('killer', '1', (ctx) =>
    Promise.all([ctx.step('work', null), ctx.localStep('kill', killThisProcess)])
  )
}
