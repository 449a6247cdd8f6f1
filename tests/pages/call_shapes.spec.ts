import { test } from '@japa/runner'
import { BaseWorkflow } from '../../src/base_workflow.ts'
import { workflowDefinitions } from '../../src/engine/workflow_class.ts'
import { FatalError } from '../../src/errors.ts'
import { defineStep, Step } from '../../src/step.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import type { DeadLetter, OnErrorInput } from '../../src/types/workflow.ts'
import { Stage } from '../support/stage.ts'
import { DurableApp } from '../support/durable_app.ts'

/** What the steps of these tests were called with. */
const rung: unknown[] = []
const filed: unknown[] = []

class BellService {
  @Step()
  async ring(alarm: { run: string; of: string }) {
    rung.push(alarm)
  }
}

class FileService {
  readonly #prefix = 'file'

  @Step()
  async open(matter: { subject: string; content: unknown }) {
    filed.push(matter)
    return { number: `${this.#prefix}-7` }
  }
}

class Mill extends BaseWorkflow {
  static override workflow = { name: 'mill', version: '1' }

  constructor(
    private bells: BellService,
    private files: FileService
  ) {
    super()
  }

  async run(ctx: WorkflowCtx, input: { sacks: number }) {
    return ctx.localStep('grind', () => input.sacks)
  }

  override async deadLetter(ctx: WorkflowCtx, dead: DeadLetter<{ sacks: number }>) {
    await ctx.step(this.bells.ring, { run: dead.deadRunId, of: dead.workflow })
    const file = await ctx.step(this.files.open, {
      subject: `${dead.workflow} ${dead.deadRunId}`,
      content: dead.input,
    })
    return { file: file.number }
  }
}

interface Sack {
  kilos: number
}

class TornSack extends FatalError {
  static override readonly code = 'torn_sack'
  constructor(message: string, details?: unknown) {
    super(message, TornSack.code, details)
  }
}

const swept: unknown[] = []
const weigh = defineStep('call_shapes.weigh', async (sack: Sack) => {
  if (sack.kilos < 0) throw new TornSack(`${sack.kilos} kilos`, [{ path: ['kilos'] }])
})
const sweep = defineStep('call_shapes.sweep', async (mess: { sack: Sack; why: string }) => {
  swept.push(mess)
})

class SweepFloor extends BaseWorkflow {
  static override workflow = { name: 'sweep-floor' }

  async run(ctx: WorkflowCtx, failure: OnErrorInput<Sack>): Promise<{ full: boolean }> {
    await ctx.step(sweep, { sack: failure.input, why: failure.error.message })
    return { full: false }
  }
}

class FillSack extends BaseWorkflow {
  static override workflow = {
    name: 'fill-sack',
    onError: [{ code: TornSack, workflow: SweepFloor }],
  }

  async run(ctx: WorkflowCtx, sack: Sack): Promise<{ full: boolean }> {
    await ctx.step(weigh, sack)
    return { full: true }
  }
}

test.group('Call shapes', () => {
  test('DL-20: deadLetter() runs steps of injected services, on instances of the container', async ({
    assert,
    cleanup,
  }) => {
    const stage = await Stage.on('memory')
    cleanup(() => stage.close())
    const app = await stage.app()
    const make = async () => new Mill(new BellService(), new FileService())
    const environment = { maker: { make }, logger: app.log, origin: null, inDevelopment: false }
    for (const definition of workflowDefinitions(Mill, environment))
      app.registry.registerWorkflow(definition)
    await app.engine.start(Mill, { sacks: 3 }, 'r')
    await stage.loseBeyondCap('mill')
    await app.work()
    const handled = await stage.handled(app.engine)
    assert.equal(handled.workflow, 'mill.dlq')
    assert.deepEqual(handled.output, { file: 'file-7' })
    assert.deepEqual(rung, [{ run: 'r', of: 'mill' }])
    assert.deepEqual(filed, [{ subject: 'mill r', content: { sacks: 3 } }])
  })

  test('OE-1, OE-6: classes route to classes, and all() of a class has one result for each input', async ({
    assert,
    cleanup,
  }) => {
    const app = new DurableApp()
    cleanup(() => app.close())
    app.engine.register('cart', '1', (ctx, sacks: Sack[]) => ctx.all(FillSack, sacks))
    await app.work()
    const cart = { name: 'cart', version: '1' }
    const handle = await app.engine.start(cart, [{ kilos: 5 }, { kilos: -1 }, { kilos: 7 }])
    assert.deepEqual(await handle.result(), [{ full: true }, { full: false }, { full: true }])
    assert.deepEqual(swept, [{ sack: { kilos: -1 }, why: '-1 kilos' }])
  })
})
