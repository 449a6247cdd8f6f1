import { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { connectTo } from './sqlite_database.ts'

/** Opens a store on the file when it is told to, and says what came of it; closes it and ends when it is told again. */
const [, , file = ''] = process.argv
const db = connectTo(file)
const store = new LucidStore({ db })
const nextLine = () => new Promise((resolve) => process.stdin.once('data', resolve))

console.log('ready')
await nextLine()
try {
  await store.open()
  console.log('opened')
} catch (error) {
  console.log(String(error))
}
await nextLine()
await store.close()
await db.manager.closeAll()
process.stdin.destroy()
