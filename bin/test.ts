import { assert } from '@japa/assert'
import { expectTypeOf } from '@japa/expect-type'
import { fileSystem } from '@japa/file-system'
import { configure, processCLIArgs, run } from '@japa/runner'
import { closingLine } from './closing_line.ts'

processCLIArgs(process.argv.slice(2))
configure({
  suites: [{ name: 'package', files: ['tests/**/*.spec.ts'], timeout: 30_000 }],
  plugins: [assert(), expectTypeOf(), fileSystem(), closingLine()],
})

await run()
