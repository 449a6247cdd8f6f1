import { readFile } from 'node:fs/promises'

interface Application {
  makePath(...paths: string[]): string
}

/** The text of a file of the application; empty when there is none. */
export async function textOf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  })
}

/** Whether the application has Lucid configured. */
export async function hasLucid(app: Application): Promise<boolean> {
  const rcFile = await textOf(app.makePath('adonisrc.ts'))
  return rcFile.includes('@adonisjs/lucid/database_provider')
}
