import type { PostgresDatabase } from './postgres_database.ts'

/**
 * Gives a database a clock that stands still until it is set: its own `clock_timestamp` is found before that of the
 * server by connections whose search path names `public` first.
 */
export async function stopClock(database: PostgresDatabase): Promise<void> {
  await database.db.rawQuery('create table clock (ms bigint)')
  await database.db.rawQuery('insert into clock values (0)')
  await database.db
    .rawQuery(`create function public.clock_timestamp() returns timestamptz language sql volatile
    as $$ select timestamptz 'epoch' + ms * interval '1 ms' from public.clock $$`)
}

export async function setClock(database: PostgresDatabase, ms: number): Promise<void> {
  await database.db.rawQuery('update clock set ms = ?', [ms])
}
