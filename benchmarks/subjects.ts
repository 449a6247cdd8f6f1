import type { BareTables } from './bare_tables.ts'
import { BareWriter } from './bare_writer.ts'
import type { EngineDatabase } from './engine_databases.ts'
import { EngineStand } from './engine_stand.ts'
import { expectResult, type SubjectFactory } from './subject.ts'

export function engineOn(open: () => Promise<EngineDatabase>): SubjectFactory {
  return async ({ inFlight }) => {
    const stand = await EngineStand.create({ database: await open(), concurrency: inFlight })
    return {
      async run(_id, steps) {
        const handle = await stand.engine.start(stand.steps, steps)
        expectResult(await handle.result(), steps)
      },
      async fanOut(_id, children) {
        const handle = await stand.engine.start(stand.fanOut, children)
        expectResult(await handle.result(), children)
      },
      tally: () => stand.tally(),
      close: () => stand.close(),
    }
  }
}

const CLAIM = 50

/** The rows that the engine would leave behind, and nothing else. */
export function bareWriterOn(tables: BareTables): SubjectFactory {
  return async () => {
    const writer = await BareWriter.create(tables)
    const stepsOf = async (run: string, steps: number) => {
      for (let seq = 0; seq < steps; seq++) {
        const record = ['record', { id: run, seq, output: JSON.stringify({ v: { seq } }) }] as const
        const end = ['complete', { id: run, output: JSON.stringify({ v: steps }) }] as const
        await writer.commit({ run, rows: seq < steps - 1 ? [record] : [record, end] })
      }
    }
    const start = (id: string, input: unknown) => {
      const values = { id, input: JSON.stringify({ v: input }) }
      return writer.commit({ run: null, rows: [['start', values]] })
    }
    return {
      async run(id, steps) {
        await start(id, steps)
        await stepsOf(id, steps)
      },
      async fanOut(id, count) {
        await start(id, count)
        const children = Array.from({ length: count }, (_, index) => `${id}.child.0.${index}`)
        const input = JSON.stringify({ v: 1 })
        const spawn = (child: string, index: number) =>
          ['spawn', { id: child, input, parent: id, index }] as const
        await writer.commit({ run: id, rows: children.map(spawn) })
        for (let first = 0; first < count; first += CLAIM) {
          const claimed = children.slice(first, first + CLAIM)
          const claim = (child: string) => ['claim', { id: child }] as const
          await writer.commit({ run: null, rows: claimed.map(claim) })
          const end = (child: string, index: number) => {
            const tell = ['tell', { id, no: first + index, child }] as const
            return Promise.all([stepsOf(child, 1), writer.commit({ run: null, rows: [tell] })])
          }
          await Promise.all(claimed.map(end))
        }
        await writer.commit({ run: id, rows: [['take', { id }]] })
        await stepsOf(id, 1)
      },
      tally: async () => writer.tally(),
      close: () => writer.close(),
    }
  }
}
