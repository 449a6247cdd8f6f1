import assert from 'node:assert/strict'
import type { PageApplication, RunFacts } from '../page_application.ts'

/** A workflow whose run dies. */
export interface Death {
  workflow: string
  /** Name of the workflow that takes care of it; null = nobody does. */
  handler: string | null
  /** Whether the snippet itself says what the handler does. */
  isShown: boolean
}

/** It has died, and its handler is done. */
export interface Dead extends Death {
  run: RunFacts
  handled: RunFacts | null
}

/** That each service which the snippet calls was called once for each run that it is to be called for. */
export async function checkServices(
  app: PageApplication,
  { dead, code }: { dead: Dead[]; code: string }
): Promise<string[]> {
  const said: string[] = []
  const shown = dead.filter(({ isShown }) => isShown)
  if (code.includes('alerts.page')) {
    const pages = await app.calls('alerts.page')
    const wanted = shown.map(({ run }) => [
      code.includes('this.alerts.page')
        ? { runId: run.id, workflow: run.workflow }
        : { runId: run.id, error: run.error?.message },
    ])
    assert.deepEqual(sorted(pages), sorted(wanted))
    said.push(`alerts.page called ${pages.length}x with ${keysOf(pages)}`)
  }
  if (code.includes('tickets.create')) {
    const created = await app.calls('tickets.create')
    const payloads = created.map(([ticket]) => (ticket as { payload: unknown }).payload)
    assert.deepEqual(sorted(payloads), sorted(shown.map(({ run }) => run.input)))
    for (const [ticket] of created) {
      const { title } = ticket as { title?: string }
      if (title === undefined) continue
      const named = shown.some(({ run }) => title.includes(run.id) && title.includes(run.workflow))
      assert.ok(named, title)
    }
    for (const { handled } of shown) assert.deepEqual(handled?.output, { ticketId: 'ticket-1' })
    said.push(
      `tickets.create called ${created.length}x with ${keysOf(created)}; output { ticketId }`
    )
  }
  if (code.includes('pager.alert')) {
    const wanted = dead.map(({ run }) => ({ runId: run.id, workflow: run.workflow }))
    const alarms = await app.until('the pager', async () => {
      const found = await app.calls('pager.alert')
      return found.length >= wanted.length ? found : undefined
    })
    assert.deepEqual(sorted(alarms.map(([, facts]) => facts)), sorted(wanted))
    for (const [topic] of alarms)
      assert.ok(typeof topic === 'string' && code.includes(`'${topic}'`))
    said.push(
      `onDead listener: pager.alert called ${alarms.length}x with topic and ${keysOf(alarms.map(([, facts]) => [facts]))}`
    )
  }
  if (code.includes('logger.error')) {
    for (const { run } of dead) {
      const [line = '', ...more] = await app.until('the log line', async () => {
        const lines = ownLines(app.output).filter((text) => text.includes(run.id))
        return lines.length > 0 ? lines : undefined
      })
      assert.deepEqual(more, [])
      for (const word of [run.workflow, run.error?.message ?? ''])
        assert.ok(line.includes(word), line)
    }
    said.push(`onDead listener: logger.error wrote run, workflow and message ${dead.length}x`)
  }
  return said
}

/** Messages at level error that are not the package's own: those carry their run as a field. */
function ownLines(output: string): string[] {
  const lines = output.split('\n').filter((line) => line.startsWith('{"level":50'))
  const logged = lines.map((line) => JSON.parse(line) as { msg: string; runId?: string })
  return logged.filter(({ runId }) => runId === undefined).map(({ msg }) => msg)
}

function sorted(values: readonly unknown[]): unknown[] {
  return values.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))
}

function keysOf([first]: readonly unknown[][]): string {
  return `{ ${Object.keys(Object(first?.[0])).join(', ')} }`
}
