import { test } from '@japa/runner'
import { FatalError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/context.ts'
import { KINDS, onEach } from '../stores/databases.ts'
import { Connection } from '../support/connection.ts'
import { type Bodies, MAIN, Site } from './site.ts'

onEach(KINDS, (kind) =>
  test.group(`A requeued body that goes another way, on ${kind}`, (group) => {
    let site: Site
    let isBroken: boolean
    let shipped: string[]
    group.each.setup(async () => {
      site = await Site.on(kind)
      isBroken = true
      shipped = []
      return () => site.close()
    })

    /** Fails at first, which the body catches; the run then fails by itself. */
    const pick = (ctx: WorkflowCtx) =>
      ctx.localStep('pick', () => {
        if (isBroken) throw new FatalError('Nothing is there', 'nothing')
        return 'picked'
      })
    const failAtFirst = () => {
      if (isBroken) throw new Error('Not this time')
    }
    const picks = (ctx: WorkflowCtx) =>
      pick(ctx).then(
        () => true,
        () => false
      )
    const bodies: Bodies = {
      ship: (ctx, by: string) =>
        ctx.localStep('ship', () => {
          shipped.push(by)
          return `by ${by}`
        }),
      store: async (_ctx, at: string) => `at ${at}`,
    }

    /** What the run comes to at first, and once it was requeued. */
    async function twice(main: (ctx: WorkflowCtx) => unknown) {
      const { engine } = await site.working({ ...bodies, main: (ctx) => main(ctx) })
      await engine.start(MAIN, null, 'r')
      const first = await engine.waitForRun('r')
      isBroken = false
      await engine.requeue('r')
      const second = await engine.waitForRun('r')
      return { engine, first, second }
    }

    test('a child of other input at the same position is another child (P3)', async ({
      assert,
    }) => {
      const { engine, first, second } = await twice(async (ctx) => {
        const parcel = await ctx.child('ship', (await picks(ctx)) ? 'air' : 'sea')
        failAtFirst()
        return parcel
      })
      assert.equal(first.status, 'failed')
      assert.equal(second.output, 'by air')
      assert.deepEqual(shipped, ['sea', 'air'])
      const { runs } = await engine.listRuns({ parentId: 'r' })
      assert.sameMembers(
        runs.map(({ id }) => id),
        ['r.child.1', 'r.child.1~1']
      )
    })

    test('a child of another workflow at the same position is another child', async ({
      assert,
    }) => {
      const { second } = await twice(async (ctx) => {
        const parcel = await ctx.child(...((await picks(ctx)) ? AIR : ATTIC))
        failAtFirst()
        return parcel
      })
      assert.equal(second.output, 'by air')
    })

    test('children of a list are those that have its workflow and inputs, each by itself', async ({
      assert,
    }) => {
      const { second } = await twice(async (ctx) => {
        const ways = (await picks(ctx)) ? ['air', 'rail'] : ['sea', 'rail', 'road']
        const parcels = await ctx.all('ship', ways)
        failAtFirst()
        return parcels
      })
      assert.deepEqual(second.output, ['by air', 'by rail'])
      assert.deepEqual(shipped.toSorted(), ['air', 'rail', 'road', 'sea'])
    })

    test('a child of the same workflow and input is not started again: its output counts (DL-9)', async ({
      assert,
    }) => {
      const { engine, second } = await twice(async (ctx) => {
        await picks(ctx)
        const parcel = await ctx.child('ship', 'sea')
        failAtFirst()
        return parcel
      })
      assert.equal(second.output, 'by sea')
      assert.deepEqual(shipped, ['sea'])
      const { runs } = await engine.listRuns({ parentId: 'r' })
      assert.lengthOf(runs, 1)
    })

    test('a child that is only started is another one, and what is sent is another signal', async ({
      assert,
    }) => {
      const { engine } = await twice(async (ctx) => {
        const way = (await picks(ctx)) ? 'air' : 'sea'
        await ctx.startChild('ship', way)
        await ctx.sendSignal('way', way)
        failAtFirst()
      })
      await engine.waitForRun('r.child.1~1')
      assert.deepEqual(shipped, ['sea', 'air'])
      engine.register('listen', '1', async (ctx) => [
        await ctx.waitForSignal('way'),
        await ctx.waitForSignal('way'),
      ])
      const listening = await engine.start({ name: 'listen', version: '1' })
      assert.deepEqual(await listening.result(), ['sea', 'air'])
    })

    test('inputs of children are read by the page, not one by one (P10)', async ({ assert }) => {
      const connection = new Connection(await site.database.connect())
      const app = await site.add({ store: connection.store })
      for (const [name, body] of Object.entries(bodies)) app.engine.register(name, '1', body)
      app.engine.register('main', '1', async (ctx) => {
        await picks(ctx)
        for (const way of ['sea', 'air', 'road']) await ctx.child('ship', way)
        failAtFirst()
      })
      await app.work()
      await app.engine.start(MAIN, null, 'r')
      await app.engine.waitForRun('r')
      const before = connection.calls('getRun')
      await app.engine.requeue('r')
      assert.equal(connection.calls('inputsOf'), 1)
      assert.equal(connection.calls('getRun') - before, 1)
    })

    test('a run that is requeued again knows the children of both ways (P3)', async ({
      assert,
    }) => {
      const ways = ['sea', 'air', 'sea', 'road']
      const { engine } = await site.working({
        ...bodies,
        main: async (ctx) => {
          const way = await ctx.localStep('way', () => ways[0]).catch(() => null)
          const failure = await ctx
            .localStep('fails', () => {
              throw new FatalError(String(way), 'no')
            })
            .catch(() => ways.shift())
          const parcel = await ctx.child('ship', failure ?? 'nowhere')
          if (ways.length > 0) throw new Error('Not yet')
          return parcel
        },
      })
      await engine.start(MAIN, null, 'r')
      await engine.waitForRun('r')
      for (let requeue = 0; requeue < 3; requeue++) {
        await engine.requeue('r')
        await engine.waitForRun('r')
      }
      const run = await engine.getRun('r')
      assert.equal(run?.output, 'by road')
      assert.deepEqual(shipped, ['sea', 'air', 'road'])
      const { runs } = await engine.listRuns({ parentId: 'r' })
      assert.sameMembers(
        runs.map(({ id }) => id),
        ['r.child.2', 'r.child.2~1', 'r.child.2~2']
      )
    })
  })
)

const AIR: [string, string] = ['ship', 'air']
const ATTIC: [string, string] = ['store', 'attic']
