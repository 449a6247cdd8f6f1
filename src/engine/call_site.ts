import { fileURLToPath } from 'node:url'
import { getCallSites } from 'node:util'

/** The path of a module's URL, without the version that hot reload appends. Null for anything but a file. */
export function fileOfUrl(url: string): string | null {
  if (url.startsWith('/')) return url
  if (!url.startsWith('file:')) return null
  const parsed = new URL(url)
  parsed.search = ''
  parsed.hash = ''
  return fileURLToPath(parsed)
}

/**
 * The file that called the function which calls this one; null when it is not a file. Definitions made by a call at
 * module level learn by it where they were written.
 */
export function callerFile(): string | null {
  const [, , caller] = getCallSites(3, { sourceMap: false })
  return caller ? fileOfUrl(caller.scriptName) : null
}
