import { SERVER } from '../../tests/stores/postgres_server.ts'
import { measureOn } from '../measured.ts'
import { profiledInto, spent } from '../meter.ts'
import type { Outcome } from '../workloads.ts'
import { throughput } from '../workloads.ts'
import { PEERS } from './peer_subjects.ts'
import type { PeerOrder } from './peer_task.ts'
import { countStatements, type StatementCounts } from './statement_counts.ts'

/** Does one thing with one subject, says what it found, and ends. */
const order = JSON.parse(process.argv[2] ?? '') as PeerOrder

function carryOut({ subject, database, task }: PeerOrder): Promise<Outcome | StatementCounts> {
  switch (task.kind) {
    case 'throughput': {
      const make = PEERS[subject]({ server: SERVER, database })
      const meter = task.profile === null ? spent : profiledInto(task.profile)
      return measureOn(throughput(task.params), make, meter)
    }
    case 'statements':
      return countStatements(subject, { database })
  }
}

process.send?.(await carryOut(order))
process.disconnect()
