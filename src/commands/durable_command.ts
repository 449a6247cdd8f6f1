import { BaseCommand } from '@adonisjs/core/ace'
import * as errors from '../errors.ts'
import { EXIT_CODES, type ExitCode } from './exit_codes.ts'

/** Whether it is one of the package's own errors, whose message says all there is to say to whoever ran a command. */
function isExpected(error: unknown): error is Error {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    Object.hasOwn(errors, error.code)
  )
}

/**
 * What the commands of the package extend: an expected error ends the command with its message and exit code 1; any
 * other keeps its stack.
 */
export abstract class DurableCommand extends BaseCommand {
  /** True: the error has been printed. */
  override completed(): boolean {
    if (!isExpected(this.error)) return false
    this.refuse(this.error.message)
    return true
  }

  /** Says why nothing is done, and gives the command the exit code of an error, which it also returns. */
  protected refuse(problem: string): ExitCode {
    this.logger.error(problem)
    this.exitCode = EXIT_CODES.error
    return EXIT_CODES.error
  }
}
