import { E_INVALID_NAME } from '../errors.ts'
import { hashOf } from './hash.ts'

/** Longest id, name, tag or token that a user may give, in characters. */
export const MAX_NAME_LENGTH = 200
/** Longest derived id, in bytes of UTF-8: what the columns hold. */
const MAX_ID_BYTES = 512

// Surrogates are refused in pairs too: JavaScript and the databases would sort them differently.
const SURROGATE = /[\ud800-\udfff]/
const CONTROL = /\p{Cc}/u
const WHITE_SPACE = /\s/

/** Why `value` cannot be an id, a name, a tag or a token; null = it can. */
export function problemOfName(value: unknown): string | null {
  if (typeof value !== 'string') return 'it is not a string'
  if (value.length > MAX_NAME_LENGTH) return `it has ${value.length} characters`
  return problemOfText(value)
}

function problemOfText(value: string): string | null {
  if (value.length === 0) return 'it is empty'
  if (CONTROL.test(value)) return 'it contains a control character'
  if (WHITE_SPACE.test(value)) return 'it contains white space'
  if (SURROGATE.test(value))
    return 'it contains a surrogate (a character such as an emoji, or half of one)'
  return null
}

export function isName(value: unknown): value is string {
  return problemOfName(value) === null
}

/** Whether a run may have this id, which may be a derived one. */
export function isRunId(value: unknown): value is string {
  return (
    typeof value === 'string' && utf8Length(value) <= MAX_ID_BYTES && problemOfText(value) === null
  )
}

function shown(value: unknown): string {
  if (typeof value !== 'string') return `of type ${value === null ? 'null' : typeof value}`
  return JSON.stringify(value.length > MAX_NAME_LENGTH ? `${value.slice(0, 40)}...` : value)
}

/**
 * Returns `value` if it may be an id, a name, a tag or a token: 1 to 200 characters without control characters,
 * surrogates or white space. Else throws `E_INVALID_NAME`.
 *
 * @param kind what it is, for the message: `run id`, `workflow name`, `signal token`
 */
export function checkName(kind: string, value: unknown): string {
  const problem = problemOfName(value)
  if (typeof value === 'string' && problem === null) return value
  throw new E_INVALID_NAME([kind, shown(value), problem ?? 'it is not a string'])
}

/** Returns `value` if a run may have it as its id, a derived one too. Else throws `E_INVALID_NAME`. */
export function checkRunId(value: unknown): string {
  if (isRunId(value)) return value
  const problem = typeof value === 'string' ? problemOfText(value) : 'it is not a string'
  throw new E_INVALID_NAME(['run id', shown(value), problem ?? `it has over ${MAX_ID_BYTES} bytes`])
}

function utf8Length(text: string): number {
  let bytes = 0
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    bytes += unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3
  }
  return bytes
}

/** As many characters as fit into `bytes`, from the start (`step` 1) or the end (-1). */
function fitting(text: string, bytes: number, step: 1 | -1): string {
  let length = 0
  let left = bytes
  while (length < text.length) {
    left -= utf8Length(text.charAt(step === 1 ? length : text.length - 1 - length))
    if (left < 0) break
    length++
  }
  return step === 1 ? text.slice(0, length) : text.slice(text.length - length)
}

/**
 * The id of something that belongs to something else: the parts, joined as they are (`deriveId(run, '.child.', 3)`).
 * Where that exceeds 512 bytes, the middle is replaced by a hash of the whole, so that prefix and suffix stay
 * readable and ids stay apart. The same parts always give the same id.
 */
export function deriveId(...parts: readonly (string | number)[]): string {
  const whole = parts.join('')
  if (utf8Length(whole) <= MAX_ID_BYTES) return whole
  const hash = hashOf(whole)
  const room = (MAX_ID_BYTES - hash.length - 2) / 2
  return `${fitting(whole, room, 1)}~${hash}~${fitting(whole, room, -1)}`
}

/** What a worker claims runs by. Names contain no space, so different names never give one key. */
export function claimKey(namespace: string, workflow: string, version: string): string {
  return `${namespace} ${workflow} ${version}`
}

/**
 * The key by which a suspect is claimed: a run that was lost so often that it may be what kills its workers. Suspects
 * are probed on their own, so that they never fill the claims of the others. A name contains no space, so no claim key
 * begins with one.
 */
export function suspectKey(key: string): string {
  return isSuspectKey(key) ? key : ` ${key}`
}

export function isSuspectKey(key: string): boolean {
  return key.startsWith(' ')
}

/** The claim key without the mark of a suspect. */
export function ordinaryKey(key: string): string {
  return isSuspectKey(key) ? key.slice(1) : key
}

/** What a worker has to know to claim by a key, as messages say it. */
export function claimKeyInWords(key: string): string {
  const [namespace, workflow, version] = ordinaryKey(key).split(' ')
  return `workflow "${workflow}" version "${version}" in namespace "${namespace}"`
}
