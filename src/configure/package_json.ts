import { addItems, addMembers } from './json_text.ts'

const FOLDERS = ['workflows', 'steps'] as const

/** How the application's own subpath imports end, such as `.js`. */
function importSuffix(text: string): string {
  const { imports = {} }: { imports?: Record<string, unknown> } = JSON.parse(text)
  const values = Object.values(imports).filter((value) => typeof value === 'string')
  return values.map((value) => /\*(\.\w+)$/.exec(value)?.[1]).find((suffix) => suffix) ?? '.js'
}

/**
 * The package.json of an application with `#workflows/*` and `#steps/*`, and both folders among those that the
 * development server reloads, where it does that at all. What is there already stays as it is.
 */
export function withWorkflowFolders(text: string): string {
  const suffix = importSuffix(text)
  const imports = FOLDERS.map((folder) => [`#${folder}/*`, `./app/${folder}/*${suffix}`])
  const boundaries = FOLDERS.map((folder) => `./app/${folder}/**/*.ts`)
  const withImports = addMembers(text, 'imports', Object.fromEntries(imports))
  return addItems(withImports, ['hotHook', 'boundaries'], boundaries)
}
