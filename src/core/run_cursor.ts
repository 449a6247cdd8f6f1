import { E_INVALID_CURSOR } from '../errors.ts'
import type { RunRow } from './run.ts'

/** Where a run stands in a listing. */
export type RunPosition = Pick<RunRow, 'createdAt' | 'id'>

const SHOWN_CHARACTERS = 60

/** The cursor behind a run, in ASCII letters, digits, `-` and `_`. Only `positionOfCursor` knows what it says. */
export function cursorOf({ createdAt, id }: RunPosition): string {
  const base64 = btoa(encodeURIComponent(`${createdAt}:${id}`))
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** The position that `cursorOf` was given. Throws E_INVALID_CURSOR for any text that it did not make. */
export function positionOfCursor(cursor: string): RunPosition {
  const [, createdAt, id] = /^(\d+):(.+)$/.exec(textOf(cursor)) ?? []
  const position = { createdAt: Number(createdAt), id: id ?? '' }
  if (id === undefined || cursorOf(position) !== cursor) {
    const shown =
      cursor.length > SHOWN_CHARACTERS ? `${cursor.slice(0, SHOWN_CHARACTERS)}...` : cursor
    throw new E_INVALID_CURSOR([JSON.stringify(shown)])
  }
  return position
}

/** Empty for a text that is not encoded. */
function textOf(cursor: string): string {
  try {
    return decodeURIComponent(atob(cursor.replaceAll('-', '+').replaceAll('_', '/')))
  } catch {
    return ''
  }
}
