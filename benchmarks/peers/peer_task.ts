import type { ThroughputParams } from '../workloads.ts'
import type { PeerName } from './peer_subjects.ts'

/** What a process is to do with a subject. */
export type PeerTask =
  | {
      kind: 'throughput'
      params: ThroughputParams
      /** Where a profile of the measured part goes; null = none is made. */
      profile: string | null
    }
  | { kind: 'statements' }

export interface PeerOrder {
  subject: PeerName
  /** Empty, and for this alone. */
  database: string
  task: PeerTask
}
