import { test } from '@japa/runner'
import { readdir, readFile } from 'node:fs/promises'
import ts from 'typescript'
import { WorkflowEngine } from '../../src/engine/engine.ts'
import { DurableApp } from '../support/durable_app.ts'

const root = new URL('../../', import.meta.url)

async function statementsOf(path: string) {
  const source = await readFile(new URL(path, root), 'utf8')
  return ts.createSourceFile(path, source, ts.ScriptTarget.Latest).statements
}

/** Names that a file exports from others as types alone. */
async function typesGatheredBy(path: string): Promise<string[]> {
  const statements = await statementsOf(path)
  return statements.flatMap((statement) =>
    ts.isExportDeclaration(statement) &&
    statement.isTypeOnly &&
    statement.exportClause &&
    ts.isNamedExports(statement.exportClause)
      ? statement.exportClause.elements.map(({ name }) => name.text)
      : []
  )
}

/** Names of the types that a file declares and exports. */
async function typesDeclaredBy(path: string): Promise<string[]> {
  const statements = await statementsOf(path)
  return statements.flatMap((statement) =>
    (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) &&
    statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
      ? [statement.name.text]
      : []
  )
}

test.group('Public types', () => {
  test('the main entry has every type that ./types has', async ({ assert }) => {
    const main = await typesGatheredBy('index.ts')
    assert.sameMembers(main, await typesGatheredBy('src/types/main.ts'))
    assert.includeMembers(main, ['WorkflowCtx', 'WorkflowRun', 'RunPage', 'SerializedError'])
  })

  test('every type of src/types is public', async ({ assert }) => {
    const files = await readdir(new URL('src/types/', root))
    const declared = await Promise.all(
      files.filter((file) => file !== 'main.ts').map((file) => typesDeclaredBy(`src/types/${file}`))
    )
    assert.includeMembers(await typesGatheredBy('src/types/main.ts'), declared.flat())
  })
})

test.group('Public members of the engine', () => {
  test('they are those of applications, and nothing that workers need', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    assert.isEmpty(Object.keys(app.engine))
    assert.sameMembers(Object.getOwnPropertyNames(WorkflowEngine.prototype), [
      ...['constructor', 'register', 'start', 'signal', 'cancel', 'requeue', 'retryWithInput'],
      ...['getRun', 'listRuns', 'getHistory', 'waitForRun', 'findStranded', 'listWorkers'],
      ...['on', 'onDead', 'unservedOnErrorRoutes', 'recoverIncomplete', 'advanceClock', 'stop'],
    ])
  })
})
