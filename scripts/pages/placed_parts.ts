import ts from 'typescript'
import { withoutElisions } from './elisions.ts'
import { isExecutable, type Part } from './parts.ts'
import { PARAMETERS, SUPPLIES, type Supply } from './supplies.ts'
import { nodesOf, parse } from './syntax.ts'
import { undeclaredNames } from './undeclared.ts'

/** A part as a file of an application. */
export interface PlacedPart extends Part {
  /** From the root of the application. */
  path: string
  /** What the file holds: the part, what it belongs to, and imports of what it does not declare. */
  text: string
  /** Names that others may import from it. */
  exports: string[]
}

export interface PlaceParams {
  part: Part
  /** Unique among the parts of a page. */
  name: string
  /** What snippets before it export. */
  known: ReadonlyMap<string, Supply>
}

const PATHS: Readonly<Record<Part['kind'], (name: string) => string>> = {
  config: () => 'config/durable.ts',
  preload: () => 'start/durable.ts',
  workflows: (name) => `app/workflows/${name}.ts`,
  property: (name) => `app/workflows/${name}.ts`,
  statements: () => 'app/fragments/fragment.ts',
  call: () => 'app/fragments/fragment.ts',
}

/** The module that imports `#...` paths of this file name it by. */
export function moduleOf(path: string): string {
  return path
    .replace(/^app\//, '#')
    .replace(/\.ts$/, '')
    .replace(/^start\//, '#start/')
}

/** Puts a part where it belongs. Throws when it uses a name that nobody supplies. */
export function place({ part, name, known }: PlaceParams): PlacedPart {
  const whole = wrapped({ ...part, code: withoutElisions(part.code) })
  const text = `${importsFor(undeclaredNames(whole), known)}${whole}\n`
  const path =
    part.kind === 'call' && part.code.startsWith('ctx.')
      ? PATHS.workflows(name)
      : PATHS[part.kind](name)
  return { ...part, path, text, exports: exportsOf(whole) }
}

function wrapped({ kind, code }: Part): string {
  switch (kind) {
    case 'config':
    case 'preload':
    case 'workflows':
      return code
    case 'property':
      return inClass(code)
    case 'statements':
      return inFunction(code)
    case 'call':
      return ofCall(code)
  }
}

function inClass(code: string): string {
  const isAboutFailures = code.startsWith('onError')
  return `export class PropertyWorkflow extends BaseWorkflow {
  static workflow = { name: 'property', ${code.replace(/,\s*$/, '')} }

  async run(ctx: WorkflowCtx, input: ${isAboutFailures ? 'ProviderInput' : 'PoisonInput'}) {
    return ctx.step(${isAboutFailures ? 'askProvider' : 'poison'}, input)
  }
}`
}

function inFunction(code: string): string {
  const { statements } = parse(code)
  const textOf = (which: (statement: ts.Statement) => boolean) =>
    statements
      .filter(which)
      .map((statement) => statement.getFullText())
      .join('')
  const outside = textOf((statement) => !isExecutable(statement))
  const inside = textOf(isExecutable)
  const declared = statements.filter(isExecutable).flatMap(declaredNames)
  return `${outside}\n${functionOf(`${inside}\nreturn { ${declared.join(', ')} }`)}`
}

function ofCall(code: string): string {
  const call = code.replaceAll(/(\w)\?(?=\s*[,)}])/g, '$1')
  if (!call.startsWith('ctx.')) return functionOf(`return ${call}`)
  return `export class CallingWorkflow extends BaseWorkflow {
  static workflow = { name: 'calling' }

  async run(ctx: WorkflowCtx, ${parametersOf(call)}) {
    return ${call}
  }
}`
}

function functionOf(body: string): string {
  return `export async function fragment(${parametersOf(body)}) {\n${body}\n}`
}

function parametersOf(code: string): string {
  // A return belongs to a function, and what is undeclared in it is what the function gets.
  const names = undeclaredNames(
    `async () => {\n${code.includes('return') ? code : `return ${code}`}\n}`
  )
  const given = names.filter((name) => PARAMETERS.has(name) && !SUPPLIES.has(name))
  const types = given.map((name) => `${name}: ${PARAMETERS.get(name)}`)
  return given.length === 0 ? '' : `{ ${given.join(', ')} }: { ${types.join('; ')} }`
}

function declaredNames(statement: ts.Statement): string[] {
  if (!ts.isVariableStatement(statement)) return []
  return statement.declarationList.declarations.flatMap(({ name }) =>
    ts.isIdentifier(name)
      ? [name.text]
      : [...nodesOf(name)].filter(ts.isBindingElement).map((element) => element.name.getText())
  )
}

function exportsOf(code: string): string[] {
  return parse(code).statements.flatMap((statement) => {
    if (!ts.isClassDeclaration(statement) && !ts.isFunctionDeclaration(statement)) return []
    const isExported = statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
    const isDefault = statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword)
    return isExported && !isDefault && statement.name ? [statement.name.text] : []
  })
}

function importsFor(names: readonly string[], known: ReadonlyMap<string, Supply>): string {
  return names
    .map((name) => {
      const supply = known.get(name) ?? SUPPLIES.get(name)
      if (!supply) throw new Error(`Nobody supplies "${name}", which the snippet uses`)
      const { from, as } = supply
      if (as === 'default') return `import ${name} from '${from}'\n`
      return `import { ${as === 'type' ? 'type ' : ''}${name} } from '${from}'\n`
    })
    .join('')
}
