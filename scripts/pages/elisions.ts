import ts from 'typescript'
import { nodesOf, parse } from './syntax.ts'

/** What stands for a workflow's own work where a page leaves it out: a step that may kill its process. */
const bodyOf = (ctx: string, input: string) => `return ${ctx}.step(poison, ${input})`
const METHOD = `async run(ctx: WorkflowCtx, input: PoisonInput) { ${bodyOf('ctx', 'input')} }`

/** The code with something to run where a comment such as `// …` stands for what was left out. */
export function withoutElisions(code: string): string {
  let filled = code
  for (const { index } of [...code.matchAll(/^[ \t]*\/\/ (?:…|\.\.\.)[ \t]*$/gm)].reverse()) {
    const end = code.indexOf('\n', index) === -1 ? code.length : code.indexOf('\n', index)
    filled = filled.slice(0, end) + filling(code, end) + filled.slice(end)
  }
  return filled
}

function filling(code: string, at: number): string {
  const inner = [...nodesOf(parse(code))].filter((node) => node.pos <= at && at <= node.end).at(-1)
  if (inner && ts.isClassDeclaration(inner)) return `\n${METHOD}`
  if (inner && ts.isBlock(inner) && ts.isMethodDeclaration(inner.parent)) {
    const [ctx, input] = inner.parent.parameters.map(({ name }) => name.getText())
    if (ctx !== undefined && input !== undefined) return `\n${bodyOf(ctx, input)}`
  }
  return ''
}
