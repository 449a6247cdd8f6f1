import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** The stable name of the worker that is killed and started again. */
export const WORKER_NAME = 'killed'

/** Starts `runs` runs in a process of its own, and kills it when each of them stands in its middle step. */
export async function killInTheMiddle(params: { file: string; runs: number }): Promise<void> {
  const script = fileURLToPath(new URL('./victim.ts', import.meta.url))
  const victim = fork(script, [params.file, String(params.runs)])
  const ended = once(victim, 'exit')
  const first = await Promise.race([once(victim, 'message'), ended.then(() => null)])
  if (first === null)
    throw new Error('The process ended before its runs stood in their middle step')
  victim.kill('SIGKILL')
  await ended
}
