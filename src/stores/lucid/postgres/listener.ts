import { randomUUID } from 'node:crypto'
import { clearTimeout, setTimeout } from 'node:timers'
import type { FlushNews } from '../../../core/change_set.ts'
import type { Notices } from './notices.ts'
import { channelOf, notify } from './notify.ts'
import type { PostgresSession } from './session.ts'

/** How long a notification to oneself may take, in ms; on a direct connection it takes one. */
const TEST_MS = 2_000
/** What the test's notifications begin with; those of other processes are of no interest. */
const PROBE = 'probe '

type Listener = (news?: FlushNews) => void

/** Tells listeners of this process what others notify, and that anything may have happened while nobody listened. */
export class NoticeListener {
  #notices: Notices
  #listeners = new Set<{ call: Listener }>()
  #probes = new Map<string, () => void>()

  constructor(notices: Notices) {
    this.#notices = notices
  }

  add(listener: Listener): () => void {
    const entry = { call: listener }
    this.#listeners.add(entry)
    return () => this.#listeners.delete(entry)
  }

  tell(news?: FlushNews): void {
    for (const { call } of this.#listeners) call(news)
  }

  clear(): void {
    this.#listeners.clear()
  }

  /** Listens on a new session. What was notified before is lost, so that everything may have changed. */
  async listenOn(session: PostgresSession): Promise<void> {
    const channel = channelOf(session)
    session.onNotification((message) => {
      if (message.channel === channel) this.#receive(message.payload)
    })
    await session.run([{ sql: `listen "${channel.replaceAll('"', '""')}"`, values: [] }])
    this.tell()
  }

  /** Whether what another session notifies arrives; behind a transaction pooler it does not. */
  async isHeard(sender: PostgresSession): Promise<boolean> {
    const probe = `${PROBE}${randomUUID()}`
    const heard = Promise.withResolvers<boolean>()
    this.#probes.set(probe, () => heard.resolve(true))
    const timer = setTimeout(() => heard.resolve(false), TEST_MS)
    try {
      await sender.run([notify(sender, probe)])
      return await heard.promise
    } finally {
      clearTimeout(timer)
      this.#probes.delete(probe)
    }
  }

  #receive(payload: string | undefined): void {
    if (payload?.startsWith(PROBE)) return this.#probes.get(payload)?.()
    const news = this.#notices.read(payload)
    if (news !== null) this.tell(news)
  }
}
