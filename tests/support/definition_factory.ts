import type { StepDefinition, WorkflowDefinition } from '../../src/engine/definitions.ts'
import type { InstanceMaker } from '../../src/engine/step_declarations.ts'
import type { TargetEnvironment } from '../../src/engine/workflow_target.ts'
import { Registry } from '../../src/engine/registry.ts'
import type { RunLogger } from '../../src/types/step.ts'

/** A workflow that returns its input. */
export function workflowDefinitionOf(
  overrides: Partial<WorkflowDefinition> = {}
): WorkflowDefinition {
  return {
    name: 'echo',
    version: '1',
    writtenAs: 'function',
    origin: null,
    tags: [],
    onError: [],
    deadLetterWorkflow: null,
    timeoutMs: null,
    input: null,
    file: null,
    createBody: async () => (_, input) => input,
    ...overrides,
  }
}

/** A step that returns its input. */
export function stepDefinitionOf(overrides: Partial<StepDefinition> = {}): StepDefinition {
  return { name: 'echo', options: {}, file: null, run: (input) => input, ...overrides }
}

/** Keeps the first argument of each call. */
export function recordingLogger(): RunLogger & { warnings: unknown[] } {
  const warnings: unknown[] = []
  const ignore = () => {}
  return {
    warnings,
    debug: ignore,
    info: ignore,
    warn: (message) => warnings.push(message),
    error: ignore,
  }
}

/** Makes instances without arguments. */
export const plainMaker: InstanceMaker = {
  make: async (target) => Reflect.construct(target, []),
}

export function targetEnvironment(overrides: Partial<TargetEnvironment> = {}): TargetEnvironment {
  return {
    registry: new Registry(),
    maker: plainMaker,
    logger: recordingLogger(),
    origin: null,
    inDevelopment: false,
    ...overrides,
  }
}
