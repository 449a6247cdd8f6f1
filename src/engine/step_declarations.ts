import { existsSync } from 'node:fs'
import { E_DUPLICATE_STEP } from '../errors.ts'
import type { StepContext, StepOptions } from '../types/step.ts'
import type { Registry } from './registry.ts'
import { stampOf, stampStep } from './step_stamp.ts'

/** A class whose instances the container makes. */
export type StepClass = abstract new (...args: any[]) => object

/** What makes the instances that steps and workflows are methods of: the container, or a resolver of it. */
export interface InstanceMaker {
  make(target: StepClass): Promise<object>
  /** Calls back with each value that is made when `target` is asked for, before its asker gets it. */
  resolving?(target: StepClass, callback: (value: object) => void): void
}

/** A step as its module wrote it: a function, or a method of a class. */
export interface StepDeclaration {
  name: string
  options: StepOptions
  file: string | null
  code:
    | { kind: 'function'; run(input: unknown, step: StepContext): unknown }
    | { kind: 'method'; owner: StepClass; key: string | symbol; isStatic: boolean }
}

/*
 * Steps are declared while modules are evaluated, and no module knows the application, let alone its registry. So
 * declarations are kept here, for all of the process; a registry that adopts them gets those made so far and every
 * later one. Several applications in one process (tests) share the declarations and keep registries of their own.
 */
const declarations = new Map<string, StepDeclaration>()
const adopters = new Set<Adopter>()

interface Adopter {
  inDevelopment: boolean
  adopt(declaration: StepDeclaration, options: { replace: boolean }): void
}

/**
 * Throws E_DUPLICATE_STEP when another file has declared the name. In development, one that has been renamed or removed
 * since is no other file.
 */
export function declareStep(declaration: StepDeclaration): void {
  const existing = declarations.get(declaration.name)
  const replace = existing !== undefined && isGone(existing.file)
  if (existing && !replace && (existing.file === null || existing.file !== declaration.file)) {
    const shown = (file: string | null) => file ?? 'an unknown file'
    throw new E_DUPLICATE_STEP([declaration.name, shown(existing.file), shown(declaration.file)])
  }
  declarations.set(declaration.name, declaration)
  for (const adopter of adopters) adopter.adopt(declaration, { replace })
}

/** In development only: what is deployed may have been built from files that are not there. */
function isGone(file: string | null): boolean {
  const inDevelopment = [...adopters].some((adopter) => adopter.inDevelopment)
  return inDevelopment && file !== null && !existsSync(file)
}

/** An object made in place of `owner` may override the step without decorating it again: the override is the step. */
function stampOverride(value: object, declaration: { name: string; key: string | symbol }): void {
  const method: unknown = Reflect.get(value, declaration.key)
  if (typeof method === 'function' && stampOf(method) === undefined)
    stampStep(method, declaration.name)
}

async function runMethod(
  code: Extract<StepDeclaration['code'], { kind: 'method' }>,
  maker: InstanceMaker,
  args: [input: unknown, step: StepContext]
): Promise<unknown> {
  const receiver: object = code.isStatic ? code.owner : await maker.make(code.owner)
  const method: unknown = Reflect.get(receiver, code.key)
  if (typeof method !== 'function') {
    throw new TypeError(
      `The container made something without the method "${String(code.key)}" for ${code.owner.name}`
    )
  }
  return Reflect.apply(method, receiver, args)
}

/**
 * Registers every declared step with `registry`, now and as their modules are evaluated, until the returned function
 * is called. Methods are called on what `maker` makes, so that a fake swapped into the container is used.
 */
export function adoptDeclaredSteps(params: {
  registry: Registry
  maker: InstanceMaker
  inDevelopment: boolean
}): () => void {
  const { registry, maker, inDevelopment } = params
  const hooked = new Map<StepClass, Set<string | symbol>>()
  let adopting = true
  const adopt = (
    { name, options, file, code }: StepDeclaration,
    { replace }: { replace: boolean }
  ) => {
    switch (code.kind) {
      case 'function':
        registry.registerStep({ name, options, file, run: code.run }, { replace })
        return
      case 'method': {
        const keys = hooked.get(code.owner) ?? new Set()
        hooked.set(code.owner, keys)
        if (!code.isStatic && !keys.has(code.key)) {
          keys.add(code.key)
          maker.resolving?.(code.owner, (value) => {
            if (adopting) stampOverride(value, { name, key: code.key })
          })
        }
        const run = (input: unknown, step: StepContext) => runMethod(code, maker, [input, step])
        registry.registerStep({ name, options, file, run }, { replace })
      }
    }
  }
  for (const declaration of declarations.values()) adopt(declaration, { replace: false })
  const adopter = { inDevelopment, adopt }
  adopters.add(adopter)
  return () => {
    adopting = false
    adopters.delete(adopter)
  }
}
