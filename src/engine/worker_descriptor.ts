/** What a worker announces of itself. */
export interface WorkerDescriptor {
  /** Namespace, workflow and version of each kind of run it takes. */
  claimKeys: readonly string[]
  concurrency: number
  pid: number
  host: string
}

/** The claim keys that a worker has announced; none where another version of the package wrote it in a form of its own. */
export function announcedKeys(descriptor: string): readonly string[] {
  const announced = parsed(descriptor)
  const keys: unknown =
    typeof announced === 'object' && announced !== null
      ? Reflect.get(announced, 'claimKeys')
      : undefined
  return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : []
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
