import { compareWithSnapshot } from './snapshot.mjs'

const files = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
compareWithSnapshot('packed_files.txt', files.sort())
