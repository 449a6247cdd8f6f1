import { randomUUID } from 'node:crypto'
import type { Store } from '../contracts/store.ts'
import type { ResultReceipt, StepMessage, Transport } from '../contracts/transport.ts'
import type { DispatchKey, StepOutcome, StepResult } from '../core/dispatch.ts'
import { stepId } from '../core/history.ts'
import { decode, encode } from '../core/payload.ts'
import { decodeError, encodeError, serializeError } from '../core/serialized_error.ts'
import type { ResolvedOptions } from '../options.ts'
import type { ContextParams } from '../replay/context.ts'
import type { StepOrder } from '../replay/operation.ts'
import type { RunLogger } from '../types/step.ts'
import type { CommitQueue } from './commit_queue.ts'
import type { Registry } from './registry.ts'

interface DispatcherParams {
  transport: Transport
  store: () => Promise<Pick<Store, 'heartbeat'>>
  commits: CommitQueue
  registry: Registry
  options: Pick<ResolvedOptions, 'reconcileMs' | 'redispatchMax' | 'maxPayloadBytes'>
  log: RunLogger
}

/** Sends steps to whoever has their handlers, and stores what comes back. */
export class Dispatcher {
  #params: DispatcherParams

  constructor(params: DispatcherParams) {
    this.#params = params
  }

  /** Begins to listen. Rejects as the transport does. */
  open(): Promise<void> {
    return this.#params.transport.open({
      result: (result) => this.#receive(result),
      heartbeat: (attempt) => this.#beat(attempt),
    })
  }

  /** Resolves when nothing is sent and nothing comes any more. Idempotent. */
  close(): Promise<void> {
    return this.#params.transport.close()
  }

  /** What a body has to know to leave steps to others. `token`: of the lease under which it is executed. */
  dispatching(token: () => number): NonNullable<ContextParams['dispatching']> {
    const { registry, options } = this.#params
    return {
      token,
      reconcileMs: options.reconcileMs,
      redispatchMax: options.redispatchMax,
      newId: randomUUID,
      jitter: Math.random,
      isKnown: (step) => registry.step(step) !== undefined,
      optionsOf: (step) => registry.step(step)?.options ?? {},
    }
  }

  /** Sends what a turn wants executed elsewhere, once its waits are durable. What cannot be sent is sent again at its deadline. */
  send(runId: string, orders: readonly StepOrder[], undone: readonly number[]): void {
    if (orders.length === 0) return
    const { transport, log } = this.#params
    const messages = orders.map((order): StepMessage => ({
      ...order,
      runId,
      stepId: stepId(runId, order.seq, undone),
    }))
    transport.send(messages).catch((err: unknown) => {
      const names = orders.map(({ name }) => `"${name}"`).join(', ')
      log.warn({ err, runId }, `Steps could not be sent: ${names}. They are sent again later`)
    })
  }

  async #receive(result: StepResult): Promise<ResultReceipt> {
    const answer = await this.#write({ ...result, outcome: this.#checked(result.outcome) })
    if (answer.type !== 'refused') return receiptOf(answer)
    const { error } = answer
    this.#params.log.warn({ err: error, runId: result.runId }, 'A result could not be stored')
    const again = await this.#write({ ...result, outcome: this.#failure(error) })
    if (again.type === 'refused') throw again.error
    return receiptOf(again)
  }

  #write(result: StepResult) {
    return this.#params.commits.write({ type: 'result', result })
  }

  async #beat(attempt: DispatchKey): Promise<boolean> {
    const store = await this.#params.store()
    return store.heartbeat(attempt)
  }

  /** As it is stored. What cannot be read, or is too large, is a failure of the attempt. */
  #checked(outcome: StepOutcome): StepOutcome {
    const { maxPayloadBytes: maxBytes } = this.#params.options
    try {
      if (outcome.status === 'failed')
        return { ...outcome, error: encodeError(decodeError(outcome.error), { maxBytes }) }
      const output = encode(decode(outcome.output), { label: 'output', of: 'the step', maxBytes })
      return { ...outcome, output }
    } catch (error) {
      return this.#failure(error)
    }
  }

  #failure(error: unknown): StepOutcome {
    const { maxPayloadBytes: maxBytes } = this.#params.options
    return { status: 'failed', error: encodeError(serializeError(error), { maxBytes }) }
  }
}

function receiptOf({ done }: { done: boolean }): ResultReceipt {
  return done ? 'stored' : 'unwanted'
}
