import { readdir, readFile } from 'node:fs/promises'

const root = new URL('../../', import.meta.url)

/** A fenced block of a page. */
export interface Block {
  /** The word behind the fence, such as `ts`. */
  language: string
  /** What is between the fences, with a newline at its end. */
  text: string
  /** Line of the opening fence, from 1. */
  line: number
}

/** Paths of the README and of every page of the documentation, from the root of the repository. */
export async function pagePaths(): Promise<string[]> {
  const names = await readdir(new URL('docs', root))
  const docs = names.filter((name) => name.endsWith('.md'))
  return ['README.md', ...docs.map((name) => `docs/${name}`)]
}

/** Text of a page, by its path from the root of the repository. */
export function readPage(path: string): Promise<string> {
  return readFile(new URL(path, root), 'utf8')
}

/** The fenced blocks of a page, in order. */
export function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(
    ({ 1: language = '', 2: text = '', index }) => ({
      language,
      text,
      line: page.slice(0, index).split('\n').length,
    })
  )
}

/** The path that a block names in its first line (`// app/workflows/x.ts`); undefined when it names none. */
export function pathOf({ text }: Block): string | undefined {
  return /^\/\/ (\S+\.ts)\n/.exec(text)?.[1]
}
