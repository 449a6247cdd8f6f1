import ts from 'typescript'
import type { PlacedPart } from './placed_parts.ts'
import { WORKFLOW_NAMES } from './supplied_files.ts'
import { nodesOf, parse } from './syntax.ts'

/** A workflow that a snippet declares. */
interface DeclaredWorkflow {
  name: string
  /** Name of the workflow that its dead runs go to; null = none of its own. */
  deadLetterWorkflow: string | null
  /** Its failure routes: the codes as they stand, and the names of the handlers. */
  onError: { code: string; workflow: string }[]
  /** Whether the snippet shows a body that does something of its own. */
  isHandler: boolean
}

/** What the code of a snippet says, as far as scenarios need it. */
export interface Facts {
  code: string
  workflows: DeclaredWorkflow[]
  /** Of its configuration; null = it has none, or not this option. */
  maxRecoveryAttempts: number | null
  /** The handler of the whole configuration. */
  deadLetterWorkflow: string | null
  /** Whom a listener starts, by the workflow that died; `*` = any other. */
  startedOnDeath: ReadonlyMap<string, string>
}

export function factsOf(parts: readonly PlacedPart[]): Facts {
  const code = parts.map(({ text }) => text).join('\n')
  const nodes = [...nodesOf(parse(code))]
  const classes = nodes.filter(ts.isClassDeclaration)
  const names = new Map(WORKFLOW_NAMES)
  for (const { name, options } of classes.flatMap(optionsOf)) {
    const text = stringOf(propertyOf(options, 'name'))
    if (text !== null) names.set(name, text)
  }
  const config = nodes.filter(ts.isExportAssignment).map(({ expression }) => expression)[0]
  const given = config && ts.isCallExpression(config) ? config.arguments[0] : undefined
  const cap = propertyOf(given, 'maxRecoveryAttempts')
  return {
    code,
    workflows: [
      ...classes.flatMap((declaration) => workflowsOf(declaration, names)),
      ...nodes.flatMap((node) => registeredBy(node, names)),
    ],
    maxRecoveryAttempts: cap && ts.isNumericLiteral(cap) ? Number(cap.text) : null,
    deadLetterWorkflow: targetOf(propertyOf(given, 'deadLetterWorkflow'), names),
    startedOnDeath: startedOnDeath(nodes),
  }
}

function optionsOf(declaration: ts.ClassDeclaration) {
  return declaration.members.flatMap((member) =>
    ts.isPropertyDeclaration(member) && member.name.getText() === 'workflow' && declaration.name
      ? [{ name: declaration.name.text, options: member.initializer }]
      : []
  )
}

function workflowsOf(
  declaration: ts.ClassDeclaration,
  names: ReadonlyMap<string, string>
): DeclaredWorkflow[] {
  return optionsOf(declaration).flatMap(({ options }) => {
    const name = stringOf(propertyOf(options, 'name'))
    if (name === null) return []
    const isInline = declaration.members.some((member) => member.name?.getText() === 'deadLetter')
    const own = targetOf(propertyOf(options, 'deadLetterWorkflow'), names)
    const inline = `${name}.dlq`
    const deadLetterWorkflow = isInline ? inline : own
    const onError = routesOf(propertyOf(options, 'onError'), names)
    const declared = { name, deadLetterWorkflow, onError, isHandler: false }
    const handler = { name: inline, deadLetterWorkflow: null, onError: [], isHandler: true }
    return isInline ? [declared, handler] : [declared]
  })
}

function registeredBy(node: ts.Node, names: ReadonlyMap<string, string>): DeclaredWorkflow[] {
  if (!ts.isCallExpression(node) || node.expression.getText() !== 'engine.register') return []
  const [given, , fn, options] = node.arguments
  const name = stringOf(given)
  if (name === null || !fn) return []
  const deadLetterWorkflow = targetOf(propertyOf(options, 'deadLetterWorkflow'), names)
  const onError = routesOf(propertyOf(options, 'onError'), names)
  return [{ name, deadLetterWorkflow, onError, isHandler: !ts.isIdentifier(fn) }]
}

function routesOf(node: ts.Node | undefined, names: ReadonlyMap<string, string>) {
  if (!node || !ts.isArrayLiteralExpression(node)) return []
  return node.elements.map((element) => {
    const code = propertyOf(element, 'code')
    return {
      code: stringOf(code) ?? code?.getText() ?? '*',
      workflow: targetOf(propertyOf(element, 'workflow'), names) ?? '',
    }
  })
}

/** `engine.start('x', ...)` for all, or `engine.start(handlers[...] ?? 'x', ...)` with an object of names. */
function startedOnDeath(nodes: readonly ts.Node[]): ReadonlyMap<string, string> {
  const started = new Map<string, string>()
  for (const node of nodes) {
    if (!ts.isCallExpression(node) || node.expression.getText() !== 'engine.start') continue
    const [target] = node.arguments
    if (target && ts.isBinaryExpression(target)) {
      const other = stringOf(target.right)
      if (other !== null) started.set('*', other)
      for (const object of nodes.filter(ts.isVariableDeclaration)) {
        const literal = object.initializer
        if (!literal || !ts.isObjectLiteralExpression(literal)) continue
        if (!target.left.getText().startsWith(`${object.name.getText()}[`)) continue
        for (const { key, value } of entriesOf(literal)) started.set(key, value)
      }
    }
    const name = stringOf(target)
    if (name !== null) started.set('*', name)
  }
  return started
}

function entriesOf(literal: ts.ObjectLiteralExpression): { key: string; value: string }[] {
  return literal.properties.flatMap((property) => {
    const value = ts.isPropertyAssignment(property) ? stringOf(property.initializer) : null
    return property.name && value !== null ? [{ key: property.name.getText(), value }] : []
  })
}

function propertyOf(node: ts.Node | undefined, name: string): ts.Expression | undefined {
  if (!node || !ts.isObjectLiteralExpression(node)) return undefined
  return node.properties
    .filter(ts.isPropertyAssignment)
    .find((property) => property.name.getText() === name)?.initializer
}

function stringOf(node: ts.Node | undefined): string | null {
  return node && ts.isStringLiteralLike(node) ? node.text : null
}

function targetOf(node: ts.Node | undefined, names: ReadonlyMap<string, string>): string | null {
  return stringOf(node) ?? (node ? (names.get(node.getText()) ?? null) : null)
}
