import ts from 'typescript'

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.ESNext,
  moduleDetection: ts.ModuleDetectionKind.Force,
  experimentalDecorators: true,
}

/** Whether the text is a module that TypeScript can parse. */
function parses(text: string): boolean {
  const { diagnostics = [] } = ts.transpileModule(text, {
    compilerOptions: OPTIONS,
    reportDiagnostics: true,
  })
  return diagnostics.length === 0
}

export function parse(text: string): ts.SourceFile {
  return ts.createSourceFile('part.ts', text, ts.ScriptTarget.ESNext, true)
}

/** A word that stands for nothing by itself, such as a heading of prose. */
function isIdle(statement: ts.Statement): boolean {
  return (
    ts.isEmptyStatement(statement) ||
    (ts.isExpressionStatement(statement) &&
      !ts.isCallExpression(statement.expression) &&
      !ts.isAwaitExpression(statement.expression) &&
      !ts.isVoidExpression(statement.expression))
  )
}

/** Whether the text is a module whose first and last statements do something: what prose never is. */
export function isCode(text: string): boolean {
  const { statements } = parse(text)
  const [first, last] = [statements[0], statements.at(-1)]
  return !!first && !!last && !isIdle(first) && !isIdle(last) && parses(text)
}

/** Every node below `node`, itself first. */
export function* nodesOf(node: ts.Node): Generator<ts.Node> {
  yield node
  const children: ts.Node[] = []
  ts.forEachChild(node, (child) => void children.push(child))
  for (const child of children) yield* nodesOf(child)
}
