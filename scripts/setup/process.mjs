import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { delimiter } from 'node:path'
import { binFolder, projectNode, root } from './paths.mjs'

/** The environment of everything that is started here: the project's own tools come first. */
function projectEnvironment() {
  return { ...process.env, PATH: `${binFolder}${delimiter}${process.env.PATH ?? ''}` }
}

/**
 * Runs a command in the foreground, passes on the signals that this process gets,
 * and resolves to its exit code (128 + n when signal n ended it).
 */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: root,
      stdio: 'inherit',
      env: projectEnvironment(),
      ...options,
    })
    const passOn = (signal) => child.kill(signal)
    process.on('SIGINT', passOn).on('SIGTERM', passOn)
    child.once('error', reject)
    child.once('close', (code, signal) => {
      process.off('SIGINT', passOn).off('SIGTERM', passOn)
      resolve(code ?? 128 + (constants.signals[signal] ?? 0))
    })
  })
}

/** The same for a script on the project's Node.js. */
export function runNode(args, options) {
  return run(projectNode, args, options)
}

/** Runs a script on the project's Node.js and resolves to its exit code and all that it printed. */
export async function captureNode(args, options = {}) {
  let output = ''
  const child = spawn(projectNode, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: projectEnvironment(),
    ...options,
  })
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (exitCode) => resolve(exitCode ?? 1))
  })
  return { code, output }
}
