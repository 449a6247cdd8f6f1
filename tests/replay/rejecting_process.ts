/*
 * A process with a worker, in which promises reject that nobody handles. Forked by a test, because the runner of the
 * tests counts such rejections as its own. Sends what became of the runs.
 */
import { DurableApp } from '../support/durable_app.ts'
import { Gate } from '../support/gate.ts'

const app = new DurableApp()
const gate = new Gate()
const late = new Gate()
const attempts: number[] = []

app.engine.register('body', '1', async (ctx) => {
  void Promise.reject(new Error('left alone'))
  await ctx.sleep('1h')
})
app.engine.register('operation', '1', async (ctx) => {
  const forgotten = async () => {
    await ctx.localStep('bad', () => Promise.reject(new Error('bad')), { retries: 0 })
  }
  void forgotten()
  await ctx.sleep('1h')
})
app.engine.register('step', '1', (ctx) =>
  ctx.localStep(
    'careless',
    async ({ attempt }) => {
      attempts.push(attempt)
      if (attempt > 1) return 'careful'
      void Promise.reject(new Error('left alone'))
      return gate.pass()
    },
    { retries: 1, backoffMs: 1 }
  )
)
app.engine.register('bystander', '1', (ctx) => ctx.localStep('wait', () => gate.pass()))

app.engine.register('late', '1', (ctx) =>
  ctx.localStep('late', () => {
    void late.pass().then(() => Promise.reject(new Error('late')))
    return 'careful'
  })
)

await app.work()
await app.engine.start('bystander', undefined, 'bystander')
await gate.reached()
const ended: unknown[] = []
for (const name of ['body', 'operation', 'step', 'late']) {
  await app.engine.start(name, undefined, name)
  const { status, output, error } = await app.engine.waitForRun(name)
  ended.push([name, status, output ?? error?.message])
}
gate.open()
const { status } = await app.engine.waitForRun('bystander')
late.open()
await new Promise((resolve) => setTimeout(resolve))
const errors = app.log.lines.filter(({ level }) => level === 'error').map(({ args }) => args.at(-1))
process.send?.({ ended, attempts, bystander: status, errors })

void Promise.reject(new Error('of nobody'))
setTimeout(() => {
  console.error('went on')
  process.exit(0)
}, 5_000)
