import { callerFile } from './engine/call_site.ts'
import { checkSchema } from './engine/schema.ts'
import { currentScope } from './engine/scope.ts'
import { declareStep, type StepClass } from './engine/step_declarations.ts'
import { stampStep } from './engine/step_stamp.ts'
import { checkOptions, type KeysOf } from './core/known_options.ts'
import { checkName } from './core/name.ts'
import { checkStepTerms } from './core/step_terms.ts'
import { E_INVALID_STEP, E_STEP_CALLED_DIRECTLY } from './errors.ts'
import type { StepContext, StepHandler, StepOptions, StepRef } from './types/step.ts'

const STEP_OPTIONS: KeysOf<StepOptions> = {
  retries: true,
  timeoutMs: true,
  backoffMs: true,
  input: true,
  output: true,
}

function refuseInBody(name: string): void {
  if (currentScope()?.kind === 'body') throw new E_STEP_CALLED_DIRECTLY([name])
}

function checkStep(name: string, options: StepOptions): void {
  checkName('step name', name)
  checkOptions(`step "${name}"`, options, STEP_OPTIONS)
  checkStepTerms(name, options)
  checkSchema(options.input, `"input" of step "${name}"`)
  checkSchema(options.output, `"output" of step "${name}"`)
}

/**
 * Makes a step of a function: run it in a body by `ctx.step(theStep, input)`. It registers when its module is
 * evaluated. Called inside a body it throws E_STEP_CALLED_DIRECTLY; elsewhere it is the function.
 *
 * @throws E_DUPLICATE_STEP when another file defines the name, E_INVALID_NAME, E_INVALID_SCHEMA, E_INVALID_STEP,
 * E_UNKNOWN_OPTION, E_INVALID_OPTION
 */
export function defineStep<I, O>(
  name: string,
  handler: (input: I, step: StepContext) => O | Promise<O>,
  options: StepOptions = {}
): StepRef<I, O> {
  const file = callerFile()
  checkStep(name, options)
  if (typeof handler !== 'function')
    throw new E_INVALID_STEP([name, 'its handler is not a function. Pass (input, step) => ...'])

  const guarded = async (input: I, step: StepContext): Promise<O> => {
    refuseInBody(name)
    return handler(input, step)
  }
  stampStep(guarded, name)
  declareStep({
    name,
    options,
    file,
    // The input was given to ctx.step under the type of this handler, or by name, where only a schema can vouch for it.
    code: { kind: 'function', run: (input, step) => handler(input as I, step) },
  })
  return Object.assign(guarded, { stepName: name }) as StepRef<I, O>
}

/**
 * Makes a step of a method: run it in a body by `ctx.step(this.alerts.page, input)`. The engine calls it, with the
 * input and the step's context, on an instance that the container makes. The step is named `<Class>.<method>` unless
 * a name is given. It registers when its module is evaluated. Called inside a body it throws E_STEP_CALLED_DIRECTLY;
 * elsewhere it is the method.
 *
 * @throws E_DUPLICATE_STEP when another file defines the name, E_INVALID_NAME, E_INVALID_SCHEMA, E_INVALID_STEP,
 * E_UNKNOWN_OPTION, E_INVALID_OPTION
 */
export function Step(
  nameOrOptions: string | (StepOptions & { name?: string | undefined }) = {}
): <H extends StepHandler>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<H>
) => void {
  // Taken here, not in the decorator: that one is called by a helper that may live in another file.
  const file = callerFile()
  const { name: givenName, ...options } =
    typeof nameOrOptions === 'string' ? { name: nameOrOptions } : nameOrOptions

  return (target, key, descriptor) => {
    const isStatic = typeof target === 'function'
    const owner = (isStatic ? target : target.constructor) as StepClass
    const name = givenName ?? `${owner.name}.${String(key)}`
    const method = descriptor?.value
    if (method === undefined)
      throw new E_INVALID_STEP([
        name,
        '@Step() decorates methods only. Make a step of a function with defineStep()',
      ])
    checkStep(name, options)

    const guarded = function (this: unknown, ...args: Parameters<typeof method>) {
      refuseInBody(name)
      return Reflect.apply(method, this, args)
    }
    Object.defineProperty(guarded, 'name', { value: String(key), configurable: true })
    stampStep(guarded, name)
    descriptor.value = guarded as typeof method
    declareStep({ name, options, file, code: { kind: 'method', owner, key, isStatic } })
  }
}
