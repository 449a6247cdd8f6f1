/** Where a value stands in a JSON text: `[start, end)`. */
interface Span {
  start: number
  end: number
}

/** End of the string that starts at `start`. */
function endOfString(text: string, start: number): number {
  let index = start + 1
  while (index < text.length && text[index] !== '"') index += text[index] === '\\' ? 2 : 1
  return index + 1
}

/** End of the value that starts at `start`. */
function endOfValue(text: string, start: number): number {
  if (text[start] === '"') return endOfString(text, start)
  let depth = 0
  let index = start
  while (index < text.length) {
    const character = text[index] ?? ''
    if (character === '"') {
      index = endOfString(text, index)
      continue
    }
    if ('{['.includes(character)) depth++
    if ('}]'.includes(character)) {
      if (depth === 0) return index
      depth--
      if (depth === 0) return index + 1
    }
    if (depth === 0 && character === ',') return index
    index++
  }
  return index
}

/** The value of a key of the object at `object`; undefined when it has no such key. */
function valueOf(text: string, object: Span, key: string): Span | undefined {
  let index = object.start + 1
  while (index < object.end) {
    if (text[index] !== '"') {
      index++
      continue
    }
    const keyEnd = endOfString(text, index)
    const name: unknown = JSON.parse(text.slice(index, keyEnd))
    const start = text.slice(keyEnd).search(/[^\s:]/) + keyEnd
    const end = endOfValue(text, start)
    if (name === key) return { start, end }
    index = end
  }
  return undefined
}

/** Puts `member` last into the object or array at `container`, in the layout of what is there. */
function append(text: string, container: Span, member: string): string {
  const before = text.slice(0, container.end - 1).trimEnd()
  const gap = text.slice(before.length, container.end - 1)
  const isEmpty = before.length === container.start + 1
  const isInline = !isEmpty && !gap.includes('\n')
  const lineStart = text.lastIndexOf('\n', container.start) + 1
  const outer = /^[ \t]*/.exec(text.slice(lineStart))?.[0] ?? ''
  const unit = /\n([ \t]+)/.exec(text)?.[1] ?? '  '
  const lead = isInline ? (isEmpty ? '' : ' ') : `\n${outer}${unit}`
  const close = isInline ? gap : `\n${outer}`
  return `${before}${isEmpty ? '' : ','}${lead}${member}${close}${text.slice(container.end - 1)}`
}

function root(text: string): Span {
  const start = text.indexOf('{')
  return { start, end: endOfValue(text, start) }
}

/**
 * Adds members to an object below a key of the outermost object, which is made when it is missing. Members that exist
 * stay as they are, and so does the layout of the text.
 */
export function addMembers(text: string, key: string, members: Record<string, string>): string {
  let result = text
  if (!valueOf(result, root(result), key)) {
    result = append(result, root(result), `${JSON.stringify(key)}: {}`)
  }
  for (const [name, value] of Object.entries(members)) {
    const object = valueOf(result, root(result), key)
    if (!object || valueOf(result, object, name)) continue
    result = append(result, object, `${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  }
  return result
}

/** Adds strings to the array at `path`, unless it has them; nothing when there is no such array. */
export function addItems(text: string, path: [string, string], items: string[]): string {
  let result = text
  for (const item of items) {
    const object = valueOf(result, root(result), path[0])
    const array = object && valueOf(result, object, path[1])
    if (!array || result[array.start] !== '[') return result
    const present: unknown[] = JSON.parse(result.slice(array.start, array.end))
    if (!present.includes(item)) result = append(result, array, JSON.stringify(item))
  }
  return result
}
