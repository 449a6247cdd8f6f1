import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { connectTo } from './sqlite_database.ts'

/** Opens a store on the file when it is told to, and says what came of it; closes it and ends when it is told again. */
const [, , file = ''] = process.argv
const db = connectTo(file)
const store = new LucidStore({ db })
const say = (what: string) => process.send?.(what)
const told = () => once(process, 'message')

flushCompileCache()
say('ready')
await told()
try {
  await store.open()
  say('opened')
} catch (error) {
  say(String(error))
}
await told()
await store.close()
await db.manager.closeAll()
process.disconnect()
