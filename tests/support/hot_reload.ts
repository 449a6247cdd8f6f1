import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

/** Stands for hot reload: the files below a directory are evaluated again, each time they are said to be replaced. */
export class HotReload {
  #version = 0
  #hooks: ReturnType<typeof registerHooks>

  constructor(directory: string) {
    const below = pathToFileURL(`${directory}/`).href
    this.#hooks = registerHooks({
      resolve: (specifier, context, next) => {
        const result = next(specifier, context)
        return result.url.startsWith(below)
          ? { ...result, url: `${result.url.split('?')[0]}?reload=${this.#version}` }
          : result
      },
    })
  }

  replace(): void {
    this.#version++
  }

  stop(): void {
    this.#hooks.deregister()
  }
}
