import { globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { root } from '../setup/paths.mjs'
import { compareWithSnapshot } from './snapshot.mjs'

/** The subpaths of the manifest with the built file behind each, patterns written out. */
function entryPoints() {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const named = Object.entries(exports).filter(([, target]) => !target.includes('*'))
  const taken = new Set(named.map(([, target]) => target))
  const matched = Object.entries(exports)
    .filter(([, target]) => target.includes('*'))
    .flatMap(([subpath, target]) =>
      globSync(target, { cwd: root })
        .map((file) => `./${relative('.', file)}`)
        .filter((file) => !taken.has(file))
        .map((file) => {
          const [before, after] = target.split('*')
          return [subpath.replace('*', file.slice(before.length, -after.length)), file]
        })
    )
  return [...named, ...matched].sort(([a], [b]) => (a < b ? -1 : 1))
}

function namesOfBinding(name) {
  return ts.isIdentifier(name)
    ? [name.text]
    : name.elements.filter(ts.isBindingElement).flatMap((element) => namesOfBinding(element.name))
}

function namesOfStatement(statement, file) {
  if (ts.isExportAssignment(statement)) {
    return ['default']
  }
  if (ts.isExportDeclaration(statement)) {
    if (!statement.exportClause) {
      throw new Error(`${file} says "export *": name what it exports`)
    }
    return ts.isNamedExports(statement.exportClause)
      ? statement.exportClause.elements.map((element) => element.name.text)
      : [statement.exportClause.name.text]
  }
  const modifiers = (ts.canHaveModifiers(statement) && ts.getModifiers(statement)) || []
  const has = (kind) => modifiers.some((modifier) => modifier.kind === kind)
  if (!has(ts.SyntaxKind.ExportKeyword)) {
    return []
  }
  if (has(ts.SyntaxKind.DefaultKeyword)) {
    return ['default']
  }
  return ts.isVariableStatement(statement)
    ? statement.declarationList.declarations.flatMap(({ name }) => namesOfBinding(name))
    : [statement.name.text]
}

/** The names that exist at run time, read from the built code: some modules only load inside an application. */
function exportsOf(file) {
  const source = readFileSync(join(root, file), 'utf8')
  const { statements } = ts.createSourceFile(file, source, ts.ScriptTarget.Latest)
  return statements.flatMap((statement) => namesOfStatement(statement, file)).sort()
}

compareWithSnapshot(
  'exports.txt',
  entryPoints().flatMap(([subpath, file]) => exportsOf(file).map((name) => `${subpath} ${name}`))
)
