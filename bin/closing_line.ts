import type { PluginFn } from '@japa/runner/types'

/** How long a process may live on after its last test before what keeps it alive counts as a leak. */
const lingerMs = 15_000

/**
 * Prints `N passed, N failed, N skipped` as the last line of the process, whatever reporters
 * are chosen. A run in which nothing passed fails, and so does one that something
 * (a socket, a timer, a child) keeps alive after its last test.
 */
export function closingLine(): PluginFn {
  return ({ runner, emitter }) => {
    const counts = { passed: 0, failed: 0, skipped: 0 }

    emitter.on('test:end', (test) => {
      if (test.isSkipped || test.isTodo) {
        counts.skipped++
      } else if (test.hasError) {
        counts.failed++
      } else {
        counts.passed++
      }
    })

    emitter.on('runner:end', () => {
      if (runner.getSummary().hasError && counts.failed === 0) {
        counts.failed = 1
      }
      setTimeout(() => {
        const kept = process.getActiveResourcesInfo().join(', ')
        console.error(`The process is kept alive after its last test by: ${kept}`)
        process.exit(1)
      }, lingerMs).unref()
    })

    process.on('exit', (code) => {
      const failed = code === 0 ? counts.failed : Math.max(counts.failed, 1)
      if (failed === 0 && counts.passed === 0) {
        console.error('No test passed: nothing matched, or everything was skipped.')
      }
      console.log(`${counts.passed} passed, ${failed} failed, ${counts.skipped} skipped`)
      process.exitCode = failed > 0 || counts.passed === 0 ? 1 : 0
    })
  }
}
