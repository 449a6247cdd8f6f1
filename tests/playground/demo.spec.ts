import { test } from '@japa/runner'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const playground = fileURLToPath(new URL('../../playground/', import.meta.url))
const LINES = 40

/** The demo on a part of the file, with a listener of its lines. */
async function runDemo(onLine: (line: string, signal: (name: NodeJS.Signals) => void) => void) {
  const demo = spawn(process.execPath, ['demo.mjs', `--lines=${LINES}`], { cwd: playground })
  demo.stderr.resume()
  const lines: string[] = []
  createInterface({ input: demo.stdout }).on('line', (line) => {
    lines.push(line)
    onLine(line, (name) => demo.kill(name))
  })
  const [code] = await once(demo, 'close')
  // What a demo that failed leaves to look at.
  await rm(join(playground, 'tmp/demo', String(demo.pid)), { recursive: true, force: true })
  return { code, lines }
}

/** The table at the end: what the import counted and what the separate script counted, by name. */
function tableOf(lines: string[]): Map<string, [string, string]> {
  const rows = lines.map((line) => /^ {2}(\S.*?) {2,}([\d,]+) +([\d,]+)$/.exec(line))
  return new Map(
    rows.flatMap((row) => (row ? [[row[1] ?? '', [row[2] ?? '', row[3] ?? '']] as const] : []))
  )
}

function workersOf(lines: string[]): number[] {
  return lines.flatMap((line) => {
    const pid = /started, process (\d+)$/.exec(line)?.[1]
    return pid === undefined ? [] : [Number(pid)]
  })
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test.group('Demo', () => {
  test('counts what a separate script counts when a worker is killed and started again', async ({
    assert,
  }) => {
    const { code, lines } = await runDemo(() => {})
    assert.equal(code, 0, lines.join('\n'))

    const table = tableOf(lines)
    assert.deepEqual(table.get('lines'), [String(LINES), String(LINES)])
    for (const [name, [ours, theirs]] of table) assert.equal(ours, theirs, name)
    assert.isAbove(Number(table.get('airports')?.[0]), 0)
    assert.isAbove(Number(table.get('failed lines')?.[0]), 0)

    assert.lengthOf(
      lines.filter((line) => line.includes('killed (SIGKILL)')),
      1
    )
    const workers = workersOf(lines)
    assert.lengthOf(workers, 3)
    assert.deepEqual(workers.filter(isAlive), [])
  }).timeout(120_000)

  test('leaves no worker behind when it is told to end', async ({ assert }) => {
    const { code, lines } = await runDemo((line, signal) => {
      if (line.includes('worker-2 started')) signal('SIGTERM')
    })
    assert.equal(code, 1)
    assert.lengthOf(workersOf(lines), 2)
    assert.deepEqual(workersOf(lines).filter(isAlive), [])
  }).timeout(120_000)
})
