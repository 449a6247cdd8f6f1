import { test } from '@japa/runner'
import type { Answer, Write } from '../../src/core/change_set.ts'
import { foldBatch } from '../../src/core/fold.ts'
import type { Plan } from '../../src/core/plan.ts'
import { MemoryDatabase } from '../../src/stores/memory/memory_database.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'
import { CLAIM_KEY, newWorker } from '../../src/testing/conformance/writes.ts'
import { BatchWriter, contentsOf, endedRuns, placesOf } from './batch_writer.ts'
import { RandomSource } from './random_source.ts'

const SEEDS = 60
const ROUNDS = 25

/** Two databases with one history: one gets its batches whole, the other write by write. */
class Twins {
  #now = 1_000
  readonly whole = new MemoryDatabase({ clock: () => this.#now })
  readonly single = new MemoryDatabase({ clock: () => this.#now })
  readonly wholeStore = new MemoryStore(this.whole)
  readonly singleStore = new MemoryStore(this.single)
  readonly random: RandomSource
  readonly writer: BatchWriter

  /** @param options.hasInterventions whether runs are cancelled and requeued */
  constructor(seed: number, options: { hasInterventions: boolean }) {
    this.random = new RandomSource(seed)
    this.writer = new BatchWriter(this.random, this.whole, options)
    const worker = newWorker('w1', { leaseMs: 1e9 })
    for (const { workers } of [this.whole, this.single]) workers.register(worker, 0)
  }

  /** Lets some time pass, often none, and lets the worker claim, mostly. */
  async goOn(): Promise<string[][]> {
    if (this.random.chance(0.5)) this.#now += this.random.below(10)
    if (this.random.chance(0.3)) return []
    const request = { owner: 'w1', claimKeys: [CLAIM_KEY], limit: 1_000 }
    const claims = [await this.wholeStore.claim(request), await this.singleStore.claim(request)]
    return claims.map((rows) => rows.map(({ id }) => id).toSorted())
  }
}

/** The keys of rows that a plan writes; each must be there once. */
function keysOf(plan: Plan): string[] {
  const byPosition = ({ runId, seq }: { runId: string; seq: number }) => `${runId} ${seq}`
  const byNumber = ({ runId, no }: { runId: string; no: number }) => `entry ${runId} ${no}`
  return [
    ...[...plan.inserts, ...plan.updates].map(({ row }) => `run ${row.id}`),
    ...plan.records.map((record) => `record ${byPosition(record)}`),
    ...[...plan.waits, ...plan.closedWaits].map((wait) => `wait ${byPosition(wait)}`),
    ...plan.served.map((wait) => `served ${byPosition(wait)}`),
    ...plan.taken.map(({ runId }) => `taken ${runId}`),
    ...[...plan.removed, ...plan.inbox].map(byNumber),
    ...plan.keptSignals.map(({ id, token }) => `kept ${token} ${id}`),
    ...plan.usedSignals.map(({ id, token }) => `used ${token} ${id}`),
    ...plan.cleared.map((runId) => `cleared ${runId}`),
    ...plan.retired.flatMap(({ runId, seqs }) => seqs.map((seq) => `retired ${runId} ${seq}`)),
    ...plan.addedTags.map(({ runId, tag }) => `tag ${runId} ${tag}`),
  ]
}

/** Later writes of the batch add to what a committed turn is told. */
function withoutInboxSeq(answers: readonly Answer[]) {
  return answers.map((answer) =>
    answer.type === 'committed' ? { ...answer, inboxSeq: 0 } : answer
  )
}

for (const hasInterventions of [false, true])
  test.group(
    `fold of random batches${hasInterventions ? ', with cancels and requeues' : ''}`,
    () => {
      test('a batch comes to the same rows as its writes one by one', async ({ assert }) => {
        let batches = 0
        for (let seed = 0; seed < SEEDS; seed++) {
          const twins = new Twins(seed, { hasInterventions })
          for (let round = 0; round < ROUNDS; round++) {
            const [whole, single] = await twins.goOn()
            assert.deepEqual(whole, single, `claims of seed ${seed}, round ${round}`)
            const writes = twins.writer.batch()
            const { answers } = await twins.wholeStore.commit(writes)
            const alone: Answer[] = []
            for (const write of writes) {
              const flush = await twins.singleStore.commit([write])
              alone.push(...flush.answers)
            }
            const place = `seed ${seed}, round ${round}`
            assert.deepEqual(
              withoutInboxSeq(answers),
              withoutInboxSeq(alone),
              `answers of ${place}`
            )
            assert.deepEqual(contentsOf(twins.whole), contentsOf(twins.single), `rows of ${place}`)
            batches++
          }
        }
        assert.equal(batches, SEEDS * ROUNDS)
      })

      test('a plan has one write per row, and says what became of the rows', async ({ assert }) => {
        for (let seed = 0; seed < SEEDS; seed++) {
          const twins = new Twins(seed, { hasInterventions })
          for (let round = 0; round < ROUNDS; round++) {
            await twins.goOn()
            const writes: Write[] = twins.writer.batch()
            const before = contentsOf(twins.whole)
            const wereEnded = endedRuns(twins.whole)
            const plan = foldBatch(writes, twins.whole.locked())
            assert.deepEqual(contentsOf(twins.whole), before, 'folding writes nothing')
            const keys = keysOf(plan)
            assert.sameMembers(keys, [...new Set(keys)], `seed ${seed}, round ${round}`)
            const { news } = await twins.wholeStore.commit(writes)
            const requeued = writes.flatMap((write) =>
              write.type === 'requeue' ? [write.runId] : []
            )
            const stayed = wereEnded.filter((id) => !requeued.includes(id))
            const over = endedRuns(twins.whole).filter((id) => !requeued.includes(id))
            const fresh = [...news.ended].filter((id) => !requeued.includes(id))
            assert.sameMembers([...stayed, ...fresh], over)
            for (const run of before.runs) {
              const now = twins.whole.runs.get(run.row?.id ?? '')
              const isRequeued = writes.some(
                (write) => write.type === 'requeue' && write.runId === run.row?.id
              )
              if (run.row?.endedAt !== null && !isRequeued)
                assert.deepEqual(now, run.row, 'terminal is terminal (P6)')
            }
            for (const { row, inbox } of contentsOf(twins.whole).runs) {
              const old = before.runs.find((run) => run.row?.id === row?.id)?.row
              const isDue = row && row.dueAt !== null && row.dueAt <= twins.whole.now()
              if (isDue && row.dueAt !== old?.dueAt) assert.isTrue(news.due.has(row.claimKey))
              const isTold = inbox.some(({ no }) => no > (old?.inboxSeq ?? 0))
              if (row?.status === 'running' && isTold) assert.isTrue(news.inbox.has(row.id))
            }
          }
        }
      })

      test('no signal is lost or there twice, none is kept that somebody waits for, no run is stranded (P4, case 12)', async ({
        assert,
      }) => {
        let consumed = 0
        for (let seed = 0; seed < SEEDS; seed++) {
          const twins = new Twins(seed, { hasInterventions })
          for (let round = 0; round < ROUNDS; round++) {
            const place = `seed ${seed}, round ${round}`
            await twins.goOn()
            await twins.wholeStore.commit(twins.writer.batch())
            const places = placesOf(twins.whole)
            for (const [id, { isConsumed }] of twins.writer.signals)
              assert.lengthOf(places.get(id) ?? [], isConsumed ? 0 : 1, `${id} of ${place}`)
            assert.isAtMost(places.size, twins.writer.signals.size, `signals of ${place}`)
            for (const { kept, waiters } of contentsOf(twins.whole).tokens)
              assert.isTrue(kept.length === 0 || waiters.length === 0, `tokens of ${place}`)
            assert.deepEqual(await twins.wholeStore.findStranded(), [], `stranded in ${place}`)
          }
          consumed += [...twins.writer.signals.values()].filter((sent) => sent.isConsumed).length
        }
        assert.isAbove(consumed, SEEDS)
      })
    }
  )
