/** What a worker announces of itself. */
export interface WorkerDescriptor {
  /** Namespace, workflow and version of each kind of run it takes. */
  claimKeys: readonly string[]
  concurrency: number
  pid: number
  host: string
}

export function parseDescriptor(text: string): WorkerDescriptor {
  return JSON.parse(text) as WorkerDescriptor
}
