import { applicationFiles, defaultConfiguration } from './application_files.ts'
import { type Facts, factsOf } from './facts.ts'
import { partsOf } from './parts.ts'
import { moduleOf, place, type PlacedPart } from './placed_parts.ts'
import type { Snippet } from './page_snippets.ts'
import { calls } from './scenarios/calls.ts'
import { deaths } from './scenarios/deaths.ts'
import { details, lines, schemas } from './scenarios/failures.ts'
import type { Scenario } from './scenarios/scenario.ts'
import { suppliedFiles } from './supplied_files.ts'
import type { Supply } from './supplies.ts'

const SCENARIOS: readonly Scenario[] = [deaths, lines, details, schemas, ...calls]
const REMOTE = /registerRemote|WorkerRuntime|workflowAnnouncement/

/** A snippet with everything that running it needs. */
export interface Prepared {
  /** Unique among all snippets. */
  name: string
  snippet: Snippet
  facts: Facts
  scenarios: Scenario[]
  /** Files of its application, by path. */
  files: Record<string, string>
}

export type Preparation =
  | { kind: 'ready'; prepared: Prepared }
  | { kind: 'skipped'; reason: string }
  | { kind: 'failed'; reason: string }

/** The snippets of a page, in its order: what one exports, later ones may use. */
export class PageOfSnippets {
  #name: string
  #exports = new Map<string, Supply>()
  #parts = new Map<string, PlacedPart>()

  constructor(name: string) {
    this.#name = name
  }

  prepare(snippet: Snippet): Preparation {
    const { language, code } = snippet
    if (language === 'python') return { kind: 'skipped', reason: 'Python: for the SDK in Python' }
    if (language === 'unread')
      return { kind: 'failed', reason: 'It looks like code, and TypeScript cannot parse it' }
    if (language === 'call' && REMOTE.test(code))
      return { kind: 'skipped', reason: 'remote workers: the package has none yet' }
    try {
      return this.#prepare(snippet)
    } catch (error) {
      return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) }
    }
  }

  #prepare(snippet: Snippet): Preparation {
    const { code, language, line } = snippet
    const isCall = language === 'call'
    const parts = isCall ? [{ kind: 'call' as const, code }] : partsOf(code)
    if (!parts) return { kind: 'failed', reason: 'No rule says what this is a part of' }
    const placed = parts.map((part, index) =>
      place({ part, name: `line_${line}_${index}`, known: this.#exports })
    )
    const scenarios = SCENARIOS.filter(({ covers }) => placed.some(covers))
    const unknown = placed.find((part) => !scenarios.some(({ covers }) => covers(part)))
    if (unknown) return { kind: 'failed', reason: `No scenario runs this part: ${unknown.code}` }
    const all = [...placed, ...this.#neededBy(placed)]
    this.#remember(placed)
    const facts = factsOf(all)
    const name = `${this.#name}_line_${line}_${isCall ? snippet.code.replaceAll(/\W+/g, '_').slice(0, 40) : 'snippet'}`
    const files = filesOf({ placed: all, facts, scenarios })
    return { kind: 'ready', prepared: { name, snippet, facts, scenarios, files } }
  }

  /** Parts of earlier snippets that these import. */
  #neededBy(placed: readonly PlacedPart[]): PlacedPart[] {
    const texts = placed.map(({ text }) => text).join('\n')
    return [...this.#parts].flatMap(([module, part]) =>
      texts.includes(`from '${module}'`) ? [part] : []
    )
  }

  #remember(placed: readonly PlacedPart[]): void {
    for (const part of placed) {
      if (part.kind !== 'workflows') continue
      const module = moduleOf(part.path)
      this.#parts.set(module, part)
      for (const name of part.exports) this.#exports.set(name, { from: module, as: 'value' })
    }
  }
}

function filesOf(params: {
  placed: readonly PlacedPart[]
  facts: Facts
  scenarios: readonly Scenario[]
}): Record<string, string> {
  const { placed, facts, scenarios } = params
  const own = Object.fromEntries(placed.map(({ path, text }) => [path, text]))
  const exported = placed
    .filter((part) => part.exports.length > 0)
    .map((part) => `export { ${part.exports.join(', ')} } from '${moduleOf(part.path)}'\n`)
  const scenario = Object.assign({}, ...scenarios.map(({ files }) => files(facts))) as Record<
    string,
    string
  >
  const hasPreload = 'start/durable.ts' in own || 'start/durable.ts' in scenario
  return {
    'config/durable.ts': defaultConfiguration,
    ...applicationFiles({ hasPreload }),
    ...suppliedFiles,
    ...(exported.length > 0 && { 'supplied/snippet_errors.ts': exported.join('') }),
    ...scenario,
    ...own,
  }
}
