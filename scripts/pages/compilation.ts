import { copyFile, mkdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import ts from 'typescript'

/** What an application of the kit compiles with, and strict; what a fragment does not use is no fault. */
const CONFIGURATION = {
  extends: '@adonisjs/tsconfig/tsconfig.app.json',
  compilerOptions: {
    strict: true,
    noUnusedLocals: false,
    noUnusedParameters: false,
    sourceMap: false,
    rootDir: './',
    outDir: '../compiled',
  },
  include: ['**/*'],
}

/**
 * Compiles every application below `folder`/source to `folder`/compiled. Resolves to the messages of the compiler by
 * the name of the application.
 */
export async function compile(
  folder: string,
  applications: readonly string[]
): Promise<Map<string, string[]>> {
  const source = join(folder, 'source')
  const { options, fileNames } = ts.parseJsonConfigFileContent(CONFIGURATION, ts.sys, source)
  const program = ts.createProgram(fileNames, options)
  const found = [...ts.getPreEmitDiagnostics(program), ...program.emit().diagnostics]
  const messages = new Map<string, string[]>(applications.map((name) => [name, []]))
  for (const diagnostic of found) {
    const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n')
    const path = diagnostic.file ? relative(source, diagnostic.file.fileName) : ''
    const [application = '', ...rest] = path.split(sep)
    const list = messages.get(application)
    if (!list) throw new Error(`${path}: ${text}`)
    const at = diagnostic.file?.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line ?? 0
    list.push(`${rest.join('/')}:${at + 1}: TS${diagnostic.code} ${text}`)
  }
  for (const name of applications) {
    await mkdir(join(folder, 'compiled', name, 'tmp'), { recursive: true })
    for (const file of ['package.json', '.env'])
      await copyFile(join(source, name, file), join(folder, 'compiled', name, file))
  }
  return messages
}
