import { compensationSeq, type HistoryRecord } from './history.ts'
import { decodeError, type SerializedError } from './serialized_error.ts'

/** What requeueing a run does to its live history. */
export interface RequeuePlan {
  /** Positions that are retired: they, and what came after them, run again. */
  retire: number[]
  /** Positions that stay: what they waited for is over. */
  kept: number[]
  /** Those of the retired ones that the body calls again as it did before: nothing that led to them is retired. */
  repeated: number[]
}

/**
 * Retires what the failure can have influenced. The cut is the first delivery among the operation whose error ended
 * the run, those that failed while it was under way, and all operations that were compensated; these and every one
 * called after that delivery go, and what was delivered to nobody goes too. The rest stays and is replayed.
 *
 * `after` counts deliveries, and ordinals have gaps once something was retired: the cut is a place in the order of the
 * deliveries.
 *
 * @param records the live generation
 * @param error why the run ended
 */
export function planRequeue(
  records: readonly HistoryRecord[],
  error: SerializedError | null
): RequeuePlan {
  const culprit = culpritOf(records, error)
  const undone = new Set(
    records.filter(({ kind }) => kind === 'compensation').map(({ seq }) => seq)
  )
  const isUndone = ({ seq }: HistoryRecord) => undone.has(compensationSeq(seq))
  const delivered = records
    .filter(({ ordinal }) => ordinal !== null)
    .sort((a, b) => a.ordinal! - b.ordinal!)
  // What failed beside the culprit would only fail the run again.
  const beside = delivered
    .slice(culprit?.after ?? delivered.length)
    .filter(({ status }) => status === 'failed')
  const starts = new Set([...beside, ...records.filter((r) => r === culprit || isUndone(r))])
  const first = [...starts].reduce(
    (least, { ordinal }) => Math.min(least, ordinal ?? Infinity),
    Infinity
  )
  const cut =
    first === Infinity ? first : delivered.filter(({ ordinal }) => ordinal! < first).length
  const isRetired = (record: HistoryRecord) =>
    (record.seq < 0 && record.kind !== 'requeue') ||
    starts.has(record) ||
    record.after > cut ||
    (record.ordinal === null && record.kind !== 'now' && record.kind !== 'requeue')
  const { retired = [], kept = [] } = Object.groupBy(records, (record) =>
    isRetired(record) ? 'retired' : 'kept'
  )
  return {
    retire: retired.map(({ seq }) => seq),
    kept: kept.map(({ seq }) => seq),
    repeated: retired.filter(({ after }) => after <= cut).map(({ seq }) => seq),
  }
}

/** The failed operation whose error, or the cause of which, ended the run; else the one that failed last. */
function culpritOf(
  records: readonly HistoryRecord[],
  error: SerializedError | null
): HistoryRecord | undefined {
  const failed = records
    .filter(({ status, ordinal }) => status === 'failed' && ordinal !== null)
    .sort((a, b) => b.ordinal! - a.ordinal!)
  const chain: SerializedError[] = []
  for (let link = error; link; link = link.cause ?? null) chain.push(link)
  const isCause = (record: HistoryRecord) => {
    const own = decodeError(record.error!)
    return chain.some((link) => link.message === own.message && link.code === own.code)
  }
  return failed.find(isCause) ?? failed[0]
}
