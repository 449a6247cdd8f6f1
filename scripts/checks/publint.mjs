import { readFile } from 'node:fs/promises'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'

const file = await readFile(process.argv[2])
const tarball = file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength)
const { messages, pkg } = await publint({ pack: { tarball }, strict: true })
for (const message of messages) {
  console.log(`${message.type}: ${formatMessage(message, pkg, { color: false })}`)
}
process.exitCode = messages.length > 0 ? 1 : 0
