import { E_NOT_A_STEP } from '../errors.ts'

/** The package may be loaded twice (a linked copy, a bundle): both must see the stamp. */
const STAMP = Symbol.for('@adonis-agora/durable:step')

/** Marks `fn` as the step `name`. The function itself is marked: `ctx.step(this.alerts.page)` is given nothing else. */
export function stampStep(fn: Function, name: string): void {
  Object.defineProperty(fn, STAMP, { value: name, configurable: true })
}

/** The name of the step that `fn` is; undefined when it is none. */
export function stampOf(fn: Function): string | undefined {
  const stamp: unknown = Object.hasOwn(fn, STAMP) ? Reflect.get(fn, STAMP) : undefined
  return typeof stamp === 'string' ? stamp : undefined
}

function shown(handler: unknown): string {
  if (typeof handler !== 'function')
    return `a value of type ${handler === null ? 'null' : typeof handler}`
  if (handler.name.startsWith('bound '))
    return `the bound function "${handler.name.slice('bound '.length)}"`
  return handler.name === '' ? 'a function without a name' : `the function "${handler.name}"`
}

/** The name of a step given by name or by its stamped function. Throws E_NOT_A_STEP, which says the ways out. */
export function stepNameOf(handler: string | Function): string {
  if (typeof handler === 'string') return handler
  const name = typeof handler === 'function' ? stampOf(handler) : undefined
  if (name === undefined) throw new E_NOT_A_STEP([shown(handler)])
  return name
}
