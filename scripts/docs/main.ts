import { writeFile } from 'node:fs/promises'
import { configurationPage } from './configuration.ts'

await writeFile(new URL('../../docs/configuration.md', import.meta.url), await configurationPage())
