import { test } from '@japa/runner'
import { encode } from '../../src/core/payload.ts'
import type { HistoryRecord } from '../../src/core/history.ts'
import { cpuTime } from '../support/cpu_time.ts'
import { PlayedTurn, recorded } from './played_turn.ts'

const STEPS = 10_000

test.group('Long histories', () => {
  for (const shape of ['sequential', 'parallel'] as const)
    test(`${STEPS} ${shape} steps replay in well under a second`, async ({ assert }) => {
      const history: HistoryRecord[] = Array.from({ length: STEPS }, (_, seq) =>
        recorded({
          ...{ seq, name: `step-${seq}`, output: encode(seq) },
          after: shape === 'sequential' ? seq : 0,
        })
      )
      const started = cpuTime()
      const played = new PlayedTurn(
        async (ctx) => {
          const step = (seq: number) => ctx.localStep(`step-${seq}`, () => seq)
          const seqs = Array.from({ length: STEPS }, (_, seq) => seq)
          let sum = 0
          if (shape === 'sequential') for (const seq of seqs) sum += await step(seq)
          else for (const value of await Promise.all(seqs.map(step))) sum += value
          return sum
        },
        { history }
      )
      const { state, starts } = await played.settled()
      const ms = cpuTime() - started
      assert.deepEqual(state, {
        kind: 'ended',
        outcome: { status: 'completed', value: (STEPS * (STEPS - 1)) / 2 },
      })
      assert.deepEqual(starts, [])
      assert.isBelow(ms, 1_000)
      console.log(`    ${STEPS} ${shape} steps replayed in ${Math.round(ms)} ms`)
    })

  test('a thousand sleeps at once are opened, come due and are delivered in well under a second', async ({
    assert,
  }) => {
    const started = cpuTime()
    const played = new PlayedTurn((ctx) =>
      Promise.all(Array.from({ length: 1_000 }, () => ctx.sleep('1m')))
    )
    const { opened } = await played.settled()
    played.turn.committed(opened, 0)
    played.turn.elapse(60_000)
    const { state, records } = await played.settled()
    assert.equal(state.kind, 'ended')
    assert.lengthOf(records, 1_000)
    assert.isBelow(cpuTime() - started, 1_000)
  })
})
