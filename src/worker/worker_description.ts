/** What a worker process is, for whoever looks at its output. */
export interface WorkerDescription {
  name: string
  pid: number
  /** `name@version`, in order of registration. */
  workflows: readonly string[]
  namespaces: readonly string[]
  store: string
  /** Runs executed at once. */
  concurrency: number
}

const WORKFLOWS_NAMED = 20

/** One line that tells what a worker executes and from where. */
export function describeWorker(worker: WorkerDescription): string {
  const { name, pid, workflows, namespaces, store, concurrency } = worker
  const count = `${workflows.length} workflow${workflows.length === 1 ? '' : 's'}`
  const named = workflows.slice(0, WORKFLOWS_NAMED).join(', ')
  const rest = workflows.length - WORKFLOWS_NAMED
  const list = rest > 0 ? `${named} and ${rest} more` : named
  const where = namespaces.join() === 'default' ? '' : ` of ${namespaces.join(', ')}`
  return (
    `durable worker "${name}" (pid ${pid}), store: ${store}, up to ${concurrency} runs at once, ` +
    `${count}${where}${list && ': '}${list}`
  )
}

/** @param workflowsPath where classes were looked for, as it is configured */
export function describeNoWorkflows(workflowsPath: string): string {
  return (
    'No workflow was found: this worker has nothing that it could execute. Export classes that extend BaseWorkflow from ' +
    `files of ${workflowsPath} ("workflowsPath"), or register functions in start/durable.ts`
  )
}

/** One line that tells a waiting worker from a broken one. `dueIn` in ms; null = nothing has a due time. */
export function describeWaiting(dueIn: number | null): string {
  return dueIn === null
    ? 'waiting: no run is due'
    : `waiting: the next run is due in ${Math.ceil(dueIn / 1_000)} s`
}
