import { isCode } from './syntax.ts'

/**
 * The lines of code that was copied together with its line numbers into one line. Undefined when the text is no such
 * line. A digit may be a line number or part of the code, so splits are tried from the left until one can be parsed.
 */
export function withoutLineNumbers(text: string): string | undefined {
  if (text.includes('\n') || !/^1\D/.test(text)) return undefined
  return split({ text: text.slice(1), number: 2, lines: [] })
}

function split(params: { text: string; number: number; lines: string[] }): string | undefined {
  const { text, number, lines } = params
  const digits = String(number)
  for (let at = text.indexOf(digits); at !== -1; at = text.indexOf(digits, at + 1)) {
    const found = split({
      text: text.slice(at + digits.length),
      number: number + 1,
      lines: [...lines, text.slice(0, at).trimEnd()],
    })
    if (found !== undefined) return found
  }
  const whole = [...lines, text].join('\n')
  return number > 2 && isCode(whole) ? whole : undefined
}
