import { registerHooks } from 'node:module'

/**
 * Preloaded into a process, makes the packages named in MISSING_PACKAGES (comma-separated)
 * impossible to resolve, whoever imports or requires them.
 */
const missing = (process.env.MISSING_PACKAGES ?? '').split(',')

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (missing.some((name) => specifier === name || specifier.startsWith(`${name}/`))) {
      throw new Error(`${specifier} is not installed in this process`)
    }
    return nextResolve(specifier, context)
  },
})
