import type {
  ResultReceipt,
  StepMessage,
  Transport,
  TransportListener,
} from '../../src/contracts/transport.ts'
import type { StepOutcome, StepResult } from '../../src/core/dispatch.ts'
import { encode } from '../../src/core/payload.ts'
import { encodeError, serializeError } from '../../src/core/serialized_error.ts'

/**
 * Carries messages between engines and a test, which takes the part of the workers. Nothing is delivered by itself: the
 * test decides what is answered, how often and in which order. An answer is delivered again and again, to whatever engine
 * listens, until one has acknowledged it.
 */
export class Broker {
  /** Everything that was sent, in order. */
  readonly sent: StepMessage[] = []
  /** While it is set, nothing can be sent. */
  isAway = false
  #listeners = new Set<TransportListener>()
  #taken = 0
  #changed = Promise.withResolvers<void>()

  /** The transport of one engine of this process. `onSend` is called before the messages are accepted. */
  transport(onSend?: (messages: readonly StepMessage[]) => Promise<void>): Transport {
    let disconnect = () => {}
    return {
      open: async (listener) => {
        disconnect = this.connect(listener)
      },
      send: async (messages) => {
        await onSend?.(messages)
        this.accept(messages)
      },
      close: async () => disconnect(),
    }
  }

  /** Somebody takes answers, until the returned function is called. */
  connect(listener: TransportListener): () => void {
    this.#listeners.add(listener)
    this.#change()
    return () => {
      this.#listeners.delete(listener)
      this.#change()
    }
  }

  accept(messages: readonly StepMessage[]): void {
    if (this.isAway) throw new Error('The broker is away')
    this.sent.push(...messages)
    this.#change()
  }

  /** The next message that the test has not seen. */
  async next(): Promise<StepMessage> {
    for (;;) {
      const message = this.sent[this.#taken]
      if (message) {
        this.#taken++
        return message
      }
      await this.#changed.promise
    }
  }

  complete(message: StepMessage, value: unknown): Promise<ResultReceipt> {
    return this.answer(message, { status: 'completed', output: encode(value) })
  }

  fail(message: StepMessage, error: unknown): Promise<ResultReceipt> {
    return this.answer(message, { status: 'failed', error: encodeError(serializeError(error)) })
  }

  answer(message: StepMessage, outcome: StepOutcome): Promise<ResultReceipt> {
    const { runId, seq, generation, attempt, dispatchId } = message
    return this.#deliver({ runId, seq, generation, attempt, dispatchId, outcome })
  }

  heartbeat({ runId, seq, generation, attempt }: StepMessage): Promise<boolean> {
    const [listener] = this.#listeners
    if (!listener) throw new Error('No engine listens')
    return listener.heartbeat({ runId, seq, generation, attempt })
  }

  async #deliver(result: StepResult): Promise<ResultReceipt> {
    for (;;) {
      const changed = this.#changed.promise
      for (const listener of [...this.#listeners]) {
        const receipt = await listener.result(result).catch(() => null)
        if (receipt !== null) return receipt
      }
      await changed
    }
  }

  #change(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }
}
