import { withoutLineNumbers } from './numbered_lines.ts'
import { isCode } from './syntax.ts'

export interface Snippet {
  /** Where it is: the line of the page, from 1. */
  line: number
  /** `call`: one call named in a sentence. `unread`: it looks like code, and no language was recognised. */
  language: 'typescript' | 'python' | 'call' | 'unread'
  code: string
}

interface Paragraph {
  line: number
  text: string
}

/** The longest snippet of a page, in paragraphs. */
const LONGEST = 20
const PYTHON = /^(?:@[\w.]+(?:\(.*\))?\n)*(?:def|class) \w+.*:(?:\n|$| )/m
/** What ends a line of code, and no line of prose. */
const CODE_LINE = /[{;(\[]$|=>$|^\s*[}\])]+[,;)]*$/m
const CALL = /\b(?:(?:engine|ctx|WorkerRuntime)\.\w+|new \w+|workflowAnnouncement)\(/g

/** Whether the page shows another language than those of the package. */
export function isForeign(page: string): boolean {
  return /^import '(?:dart|package):/m.test(page)
}

function paragraphsOf(page: string): Paragraph[] {
  const found: Paragraph[] = []
  const lines = page.split(/\r?\n/)
  for (const [index, text] of lines.entries()) {
    const last = found.at(-1)
    if (text.trim() === '') continue
    if (last && last.line + last.text.split('\n').length === index + 1) last.text += `\n${text}`
    else found.push({ line: index + 1, text })
  }
  return found
}

/** The snippets of a page without fences: the longest runs of paragraphs that are code. */
export function snippetsOf(page: string): Snippet[] {
  const paragraphs = paragraphsOf(page)
  const snippets: Snippet[] = []
  for (let index = 0; index < paragraphs.length; index++) {
    const { line, text } = paragraphs[index]!
    const run = codeAt(paragraphs, index)
    if (run) {
      snippets.push({ line, language: 'typescript', code: run.code })
      const comments = run.code.match(/\/\/.*$/gm) ?? []
      for (const code of comments.flatMap(callsIn)) snippets.push({ line, language: 'call', code })
      index += run.length - 1
      continue
    }
    const numbered = withoutLineNumbers(text)
    if (numbered !== undefined) snippets.push({ line, language: 'typescript', code: numbered })
    else if (PYTHON.test(text)) snippets.push({ line, language: 'python', code: text })
    else if (CODE_LINE.test(text)) snippets.push({ line, language: 'unread', code: text })
    else for (const code of callsIn(text)) snippets.push({ line, language: 'call', code })
  }
  return snippets.filter(
    ({ code }, at) => snippets.findIndex((other) => other.code === code) === at
  )
}

function codeAt(
  paragraphs: readonly Paragraph[],
  from: number
): { code: string; length: number } | undefined {
  for (let length = Math.min(LONGEST, paragraphs.length - from); length > 0; length--) {
    const texts = paragraphs.slice(from, from + length).map(({ text }) => text)
    const code = texts.join('\n\n')
    if (isCode(code)) return { code, length }
  }
  return undefined
}

/** Calls of the package that a sentence names, from the name to the closing parenthesis. */
function callsIn(text: string): string[] {
  return [...text.matchAll(CALL)].flatMap(({ 0: head, index }) => {
    let depth = 0
    for (let at = index + head.length - 1; at < text.length; at++) {
      if (text[at] === '(') depth++
      if (text[at] === ')' && --depth === 0) return [text.slice(index, at + 1)]
    }
    return []
  })
}
