import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export const playground = fileURLToPath(new URL('../../playground/', import.meta.url))

/** The lines that a demo is run on. */
export const LINES = 40

export interface DemoRun {
  code: number | null
  pid: number | undefined
  lines: string[]
  /** Whether it has left its folder. */
  isFolderLeft: boolean
}

/** Runs the demo on a part of the file to its end, with a listener of its lines. */
export async function runDemo(
  options: string[],
  onLine: (line: string, signal: (name: NodeJS.Signals) => void) => void = () => {}
): Promise<DemoRun> {
  const args = ['demo.mjs', `--lines=${LINES}`, ...options]
  const demo = spawn(process.execPath, args, { cwd: playground })
  const lines: string[] = []
  for (const output of [demo.stdout, demo.stderr])
    createInterface({ input: output }).on('line', (line) => {
      lines.push(line)
      onLine(line, (name) => demo.kill(name))
    })
  const [code] = await once(demo, 'close')
  const folder = join(playground, 'tmp/demo', String(demo.pid))
  const isFolderLeft = existsSync(folder)
  await rm(folder, { recursive: true, force: true })
  return { code, pid: demo.pid, lines, isFolderLeft }
}

/** The table at the end, by name: the counts of results, tables and separate script, of those that count the thing. */
export function tableOf(lines: string[]): Map<string, string[]> {
  const rows = lines.map((line) => /^ {2}(\S.*?)((?: {2,}[\d,]+){2,3})$/.exec(line))
  return new Map(
    rows.flatMap((row) => (row ? [[row[1] ?? '', row[2]?.trim().split(/ +/) ?? []] as const] : []))
  )
}

/** Process ids of the workers that were started. */
export function workersOf(lines: string[]): number[] {
  return lines.flatMap((line) => {
    const pid = /started, process (\d+)$/.exec(line)?.[1]
    return pid === undefined ? [] : [Number(pid)]
  })
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
