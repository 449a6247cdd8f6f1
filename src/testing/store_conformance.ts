import { cancellingChecks } from './conformance/cancelling.ts'
import { carryingChecks } from './conformance/carrying.ts'
import { childrenChecks } from './conformance/children.ts'
import { claimingChecks } from './conformance/claiming.ts'
import { dispatchingChecks } from './conformance/dispatching.ts'
import { fencingChecks } from './conformance/fencing.ts'
import { leasingChecks } from './conformance/leasing.ts'
import { parkingChecks } from './conformance/parking.ts'
import { readingChecks } from './conformance/reading.ts'
import { recordingChecks } from './conformance/recording.ts'
import { requeueingChecks } from './conformance/requeueing.ts'
import { settlingChecks } from './conformance/settling.ts'
import { signallingChecks } from './conformance/signalling.ts'
import { startingChecks } from './conformance/starting.ts'
import { strandingChecks } from './conformance/stranding.ts'
import { checkWith, type ConformanceOptions } from './conformance/suite.ts'
import { suspectingChecks } from './conformance/suspecting.ts'
import { wakingChecks } from './conformance/waking.ts'

export type { StoreCorruption, StoreUnderTest } from './conformance/store_under_test.ts'
export type { ConformanceOptions } from './conformance/suite.ts'

const GROUPS = {
  'starting runs': startingChecks,
  'claiming': claimingChecks,
  'fencing': fencingChecks,
  'history and waits': recordingChecks,
  'waking': wakingChecks,
  'signals': signallingChecks,
  'children': childrenChecks,
  'dispatched steps': dispatchingChecks,
  'cancelling': cancellingChecks,
  'requeueing': requeueingChecks,
  'settling': settlingChecks,
  'leases': leasingChecks,
  'suspects': suspectingChecks,
  'parking': parkingChecks,
  'reading': readingChecks,
  'stranded runs': strandingChecks,
  'payloads': carryingChecks,
}

/**
 * Declares the tests that every store has to pass. They use `node:assert`, so any runner that has groups and
 * asynchronous tests will do.
 */
export function storeConformance(options: ConformanceOptions) {
  const check = checkWith(options)
  for (const [title, define] of Object.entries(GROUPS)) options.group(title, () => define(check))
}
