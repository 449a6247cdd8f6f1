import ts from 'typescript'
import { nodesOf, parse } from './syntax.ts'

/**
 * What a part of a snippet is in an application. `config`: the default export of config/durable.ts. `preload`: it talks
 * to the engine when the application starts. `workflows`: classes and what they need. `statements`: part of a function.
 * `property`: part of a `static workflow`. `call`: one call, of values named after its parameters.
 */
type PartKind = 'config' | 'preload' | 'workflows' | 'statements' | 'property' | 'call'

export interface Part {
  kind: PartKind
  code: string
}

const PROPERTIES = ['onError', 'deadLetterWorkflow']

function isDefaultExport(statement: ts.Statement): boolean {
  return (
    ts.isExportAssignment(statement) ||
    (ts.canHaveModifiers(statement) &&
      !!ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword))
  )
}

export function isExecutable(statement: ts.Statement): boolean {
  return (
    ts.isExpressionStatement(statement) ||
    ts.isIfStatement(statement) ||
    ts.isThrowStatement(statement) ||
    (ts.isVariableStatement(statement) && statement.modifiers === undefined)
  )
}

/** Calls of methods of the engine at the top of a module, such as `onDead`. */
function callsOfEngine(file: ts.SourceFile): string[] {
  return file.statements.flatMap((statement) => {
    const call = ts.isExpressionStatement(statement) ? statement.expression : undefined
    if (!call || !ts.isCallExpression(call)) return []
    const [owner, method] = call.expression.getText().split('.')
    return owner === 'engine' && method !== undefined ? [method] : []
  })
}

function kindOf(code: string): PartKind | undefined {
  const file = parse(code)
  const isConfig = file.statements.some(
    (statement) =>
      ts.isExportAssignment(statement) && statement.expression.getText().startsWith('defineConfig(')
  )
  if (isConfig) return 'config'
  const [first] = file.statements
  if (first && ts.isLabeledStatement(first) && PROPERTIES.includes(first.label.text))
    return 'property'
  if (callsOfEngine(file).some((method) => ['onDead', 'register'].includes(method)))
    return 'preload'
  const runs = file.statements.filter(isExecutable)
  const doesSomething = runs.some((statement) =>
    [...nodesOf(statement)].some((node) => ts.isThrowStatement(node) || ts.isAwaitExpression(node))
  )
  if (doesSomething) return 'statements'
  return runs.length === 0 && file.statements.some(ts.isClassDeclaration) ? 'workflows' : undefined
}

/** The parts of a snippet, each a file at most: a module has one default export. Undefined: it fits none of the kinds. */
export function partsOf(code: string): Part[] | undefined {
  const file = parse(code)
  const texts: string[] = []
  let from = 0
  for (const statement of file.statements) {
    if (!isDefaultExport(statement)) continue
    texts.push(code.slice(from, statement.end))
    from = statement.end
  }
  if (file.statements.some(({ pos }) => pos >= from)) texts.push(code.slice(from))
  const parts = texts.map((text) => ({ kind: kindOf(text), code: text.trim() }))
  return parts.every((part): part is Part => part.kind !== undefined) ? parts : undefined
}
