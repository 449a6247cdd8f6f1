import { decode } from '../../src/core/payload.ts'
import { decodeError, serializeError } from '../../src/core/serialized_error.ts'
import type { HistoryRecord } from '../../src/core/history.ts'
import type { RunRow } from '../../src/core/run.ts'
import type { Flavour, Plan } from './body_plan.ts'
import { replay } from './replayed.ts'
import { type Simulated, SimulationFault } from './simulation.ts'

/** How the body of a run ended, in a form that can be compared. */
export type EndedAs = string

/** Checks what a simulation left in the database. Resolves to how the root run ended. Rejects with SimulationFault. */
export async function verify(simulated: Simulated, flavour: Flavour): Promise<EndedAs> {
  const { database } = simulated
  const ends = new Map<string, EndedAs>()
  for (const row of [...database.runs.rows()]) {
    checkHistory(row.id, database.history.live(row.id))
    ends.set(row.id, await checkReplay(row, simulated, flavour))
    if (database.waits.of(row.id).length > 0) throw new SimulationFault(`${row.id} keeps a wait`)
    if (database.inbox.above(row.id, 0).length > 0)
      throw new SimulationFault(`${row.id} keeps an inbox entry`)
  }
  checkSignals(simulated)
  return [...ends][0]![1]
}

function checkHistory(runId: string, history: readonly HistoryRecord[]): void {
  const bySeq = [...history].sort((a, b) => a.seq - b.seq)
  const seqs = new Set(bySeq.map(({ seq }) => seq))
  if (seqs.size < history.length)
    throw new SimulationFault(`${runId}: an operation is recorded twice`)
  const ordinals = history
    .map(({ ordinal }) => ordinal)
    .filter((ordinal) => ordinal !== null)
    .sort((a, b) => a - b)
  if (ordinals.some((ordinal, index) => ordinal !== index))
    throw new SimulationFault(`${runId}: ordinals are ${ordinals.join(' ')}`)
  bySeq.forEach(({ after }, index) => {
    if (index > 0 && after < bySeq[index - 1]!.after)
      throw new SimulationFault(`${runId}: "after" goes back`)
  })
}

async function checkReplay(
  row: RunRow,
  { database, traces }: Simulated,
  flavour: Flavour
): Promise<EndedAs> {
  const payloads = database.runs.payloads(row.id)!
  const history = database.history.live(row.id)
  const plan = decode(payloads.input) as Plan
  const { wants, trace } = await replay({ runId: row.id, plan, flavour, history })
  const state = wants?.state
  if (state?.kind !== 'ended')
    throw new SimulationFault(`${row.id}: replay comes to ${JSON.stringify(state)}`)
  if (wants!.starts.length > 0) throw new SimulationFault(`${row.id}: replay starts steps`)
  const { outcome } = state
  const replayed =
    outcome.status === 'completed'
      ? endedAs('completed', outcome.value)
      : endedAs('failed', outcome.status === 'failed' ? messageOf(outcome.error) : outcome)
  const stored =
    row.status === 'completed'
      ? endedAs(row.status, decode(payloads.output!))
      : endedAs(row.status, decodeError(payloads.error!).message)
  if (replayed !== stored)
    throw new SimulationFault(`${row.id} ended as ${stored}, and is replayed as ${replayed}`)
  const last = traces.get(row.id)?.findLast(({ ended }) => ended)
  const saw = last?.entries.join('\n')
  if (saw !== trace.entries.join('\n'))
    throw new SimulationFault(`${row.id} saw\n${saw}\nand on replay\n${trace.entries.join('\n')}`)
  return stored
}

/** Every signal is received once, or kept. */
function checkSignals({ database, signalsSent }: Simulated): void {
  const received: string[] = []
  for (const { id } of database.runs.rows())
    for (const record of database.history.live(id)) {
      if (record.kind === 'signal' && record.status === 'completed')
        received.push(String(decode(record.output!)))
    }
  const once = new Set(received)
  if (once.size < received.length)
    throw new SimulationFault(`A signal was received twice: ${received.join(' ')}`)
  const kept = ['red', 'green'].reduce((sum, token) => sum + database.kept.of(token).length, 0)
  if (received.length + kept !== signalsSent.size)
    throw new SimulationFault(
      `${signalsSent.size} signals were sent, ${received.length} received, and ${kept} are kept`
    )
}

function endedAs(status: string, value: unknown): EndedAs {
  return `${status} ${JSON.stringify(value)}`
}

function messageOf(error: unknown): string {
  return serializeError(error).message
}
