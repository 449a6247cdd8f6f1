import type { Store } from '../../src/contracts/store.ts'

/** The one worker that the database knows of. */
export async function onlyWorker(database: Pick<Store, 'listWorkers'>) {
  const [worker, ...others] = await database.listWorkers()
  if (!worker || others.length > 0)
    throw new Error(`There are ${worker ? others.length + 1 : 0} workers`)
  return worker
}
