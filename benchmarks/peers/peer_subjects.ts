import { onPostgres, type PostgresPlace } from '../engine_databases.ts'
import type { StepSubject, SubjectFactory } from '../subject.ts'
import { engineOn } from '../subjects.ts'
import { dbosOn } from './dbos.ts'

/** The subject that the others are put next to. */
export const OWN = 'engine, postgres'
export const DBOS = 'dbos'

export type PeerName = typeof OWN | typeof DBOS

/** Those that are compared on PostgreSQL, each made for an empty database. */
export const PEERS: Readonly<
  Record<PeerName, (place: PostgresPlace) => SubjectFactory<StepSubject>>
> = {
  [OWN]: (place) => engineOn(onPostgres(place)),
  [DBOS]: dbosOn,
}

export const PEER_NAMES: readonly PeerName[] = [OWN, DBOS]
