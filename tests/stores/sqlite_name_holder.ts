import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { connectTo } from './sqlite_database.ts'

/** Takes the lock on a worker name, says whether it got it, and keeps it until it is killed. */
const [, , file = '', name = ''] = process.argv
const store = new LucidStore({ db: connectTo(file) })
await store.open()
const lock = await store.lockName(name)
process.on('message', () => {})
process.send?.(lock === null ? 'refused' : 'held')
