import { connectClient } from '../../tests/stores/postgres_server.ts'
import type { PostgresPlace } from '../engine_databases.ts'
import { expectResult, type StepSubject, type SubjectFactory, type Tally } from '../subject.ts'

/** What is used of the package. It is installed only when it is to be measured, so a compiler does not find it. */
interface DbosSdk {
  DBOS: {
    setConfig(config: { name: string; systemDatabaseUrl: string; logLevel: string }): void
    launch(): Promise<void>
    shutdown(): Promise<void>
    registerWorkflow<Body>(body: Body, options: { name: string }): Body
    startWorkflow<Input, Output>(
      workflow: (input: Input) => Promise<Output>
    ): (input: Input) => Promise<{ getResult(): Promise<Output> }>
    runStep<Output>(step: () => Promise<Output>, options: { name: string }): Promise<Output>
  }
}

const PACKAGE: string = '@dbos-inc/dbos-sdk'

/**
 * DBOS in the process that starts its workflows and awaits them, which it executes at once, without its queues. Its pool
 * is left at its default: with 20 or 50 connections it is no faster. Traces are off by default, and nothing is logged.
 */
export function dbosOn(place: PostgresPlace): SubjectFactory<StepSubject> {
  return async () => {
    const { DBOS }: DbosSdk = await import(PACKAGE)
    DBOS.setConfig({ name: 'bench', systemDatabaseUrl: urlOf(place), logLevel: 'error' })
    const body = async (count: number) => {
      for (let seq = 0; seq < count; seq++)
        await DBOS.runStep(async () => ({ seq }), { name: 'step' })
      return count
    }
    const steps = DBOS.registerWorkflow(body, { name: 'steps' })
    await DBOS.launch()
    return {
      async run(_id, count) {
        const handle = await DBOS.startWorkflow(steps)(count)
        expectResult(await handle.getResult(), count)
      },
      tally: () => tallyOf(place),
      close: () => DBOS.shutdown(),
    }
  }
}

async function tallyOf({ server, database }: PostgresPlace): Promise<Tally> {
  const client = await connectClient(database, server)
  const { rows } = await client.query<Tally>(`select count(*)::int as runs,
    count(*) filter (where status = 'SUCCESS')::int as completed,
    (select count(*)::int from dbos.operation_outputs) as records from dbos.workflow_status`)
  await client.end()
  const [tally] = rows
  if (!tally) throw new Error('The database gave no count')
  return tally
}

function urlOf({ server, database }: PostgresPlace): string {
  const { host, port, user, password } = server
  const url = new URL(`postgresql://${host}:${port}/${database}`)
  url.username = user
  if (password !== undefined) url.password = password
  return url.href
}
