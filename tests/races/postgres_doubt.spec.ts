import { test } from '@japa/runner'
import type { Answer, ChangeSet } from '../../src/core/change_set.ts'
import { E_SIGNAL_IN_DOUBT } from '../../src/errors.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { errorClass } from '../../src/stores/lucid/postgres/error_class.ts'
import { lockTokens, stripesOf } from '../../src/stores/lucid/postgres/token_locks.ts'
import {
  CLAIM_KEY,
  COMPLETE,
  newRun,
  newWorker,
  parentLink,
  record,
  signal,
  start,
  startLeased,
  SUSPEND,
  turn,
  waitForSignal,
} from '../../src/testing/conformance/writes.ts'
import { Holder, settled } from '../stores/postgres_gate.ts'
import { useProxiedPostgres } from '../stores/proxied_store.ts'

const LIMIT_MS = 50

test.group('PostgreSQL: an answer is lost, and then somebody is in the way', (group) => {
  const site = useProxiedPostgres(group, { busyLimitMs: LIMIT_MS })

  /** Commits a write that is applied; of the answer nobody hears, and the server is away for longer than it is waited for. */
  async function applyUnheard(write: ChangeSet): Promise<void> {
    const lost = site.proxy.loseAnswer('SELECT')
    const committed = site.store.commit([write])
    await lost
    site.proxy.down()
    await committed.then(
      () => Promise.reject(new Error('The answer was heard')),
      () => undefined
    )
  }

  test('an end that never arrived is not taken for applied because others have handed the run back (P1)', async ({
    assert,
  }) => {
    await site.store.registerWorker(newWorker('w1', { isCounted: false }))
    await site.store.commit([startLeased('r')])
    const write = turn({ id: 'r', token: 1 }, { end: COMPLETE })
    site.proxy.down()
    await assert.rejects(() => site.store.commit([write]))
    const other = await site.database.store()
    await other.advanceClock(60_000)
    const found = await other.recoverExpired()
    assert.equal(found.runs, 1)
    site.proxy.up()
    const { answers } = await site.store.commit([write])
    assert.deepEqual(
      answers.map(({ type }) => type),
      ['lost']
    )
    const run = await other.getRun('r')
    assert.deepEqual([run?.status, run?.output], ['suspended', null])
  })

  const ENDS = { 'goes on': { kind: 'continue' }, 'suspends': SUSPEND, 'ends': COMPLETE } as const
  for (const [what, end] of Object.entries(ENDS)) {
    const write = turn(
      { id: 'r', token: 1 },
      {
        records: [record(0)],
        children: [{ run: newRun('c', { parent: parentLink('r') }), acknowledge: false }],
        end,
      }
    )

    test(`a turn that ${what} is found to be applied while its row is held (P9)`, async ({
      assert,
    }) => {
      await site.store.commit([startLeased('r')])
      await applyUnheard(write)
      const holder = await Holder.begin(site.database)
      await holder.lockRun('r')
      site.proxy.up()
      const { answers } = await site.store.commit([write])
      await holder.rollback()
      assert.deepEqual(
        answers.map(({ type }) => type),
        ['committed']
      )
    })

    test(`a turn that ${what} is found to be applied beside a start whose id is held (P9)`, async ({
      assert,
    }) => {
      await site.store.commit([startLeased('r')])
      await applyUnheard(write)
      const holder = await Holder.begin(site.database)
      await holder.insertRun('x')
      site.proxy.up()
      const { answers } = await site.store.commit([write, start('x')])
      await holder.rollback()
      const later = await Promise.all(answers.map(settled))
      assert.deepEqual(
        later.map(({ type }) => type),
        ['committed', 'started']
      )
      const history = await site.store.getHistory('r')
      assert.lengthOf(history?.records ?? [], 1)
    })
  }
})

test.group('PostgreSQL: the answer to a signal is lost', (group) => {
  const site = useProxiedPostgres(group, { busyLimitMs: 30_000 })

  /** Commits a signal to `token` of which the answer is lost; resolves while the server is away. */
  async function sendUnheard(token: string): Promise<{ sent: Promise<Answer[]> }> {
    const lost = site.proxy.loseAnswer('COMMIT')
    const sent = site.store.commit([signal('s1', token)]).then(({ answers }) => answers)
    await lost
    site.proxy.down()
    return { sent }
  }

  /** A worker with a run that waits for the token; not through the proxy. */
  async function waiting(): Promise<LucidStore> {
    const worker = await site.database.store()
    await worker.registerWorker(newWorker('w1'))
    const opened = [waitForSignal(0, 'go')]
    await worker.commit([startLeased('r'), turn({ id: 'r', token: 1 }, { opened, end: SUSPEND })])
    return worker
  }

  /** The run takes the signal and waits for the next. */
  async function take(worker: LucidStore): Promise<void> {
    const [row] = await worker.claim({ owner: 'w1', claimKeys: [CLAIM_KEY], limit: 1 })
    await worker.commit([
      turn(row!, {
        records: [record(0, { kind: 'signal' })],
        ...{ closed: [0], seenInbox: 1, opened: [waitForSignal(1, 'go')], end: SUSPEND },
      }),
    ])
  }

  async function inboxOf(worker: LucidStore): Promise<number[]> {
    const [loaded] = await worker.load([{ runId: 'r', resident: false, inboxAfter: 0 }])
    return loaded?.inbox.map(({ no }) => no) ?? []
  }

  test('a signal that was taken meanwhile is not repeated, and its sender told that it may have been delivered', async ({
    assert,
  }) => {
    const worker = await waiting()
    const { sent } = await sendUnheard('go')
    await take(worker)
    site.proxy.up()
    const [answer] = await sent
    const error = answer?.type === 'refused' ? answer.error : null
    assert.instanceOf(error, E_SIGNAL_IN_DOUBT)
    assert.equal(errorClass((error as Error).cause), 'connection')
    assert.deepEqual(await inboxOf(worker), [])
  })

  test('a signal that is still unread, or kept, is delivered once, and its sender told so', async ({
    assert,
  }) => {
    const worker = await waiting()
    for (const [token, delivered] of [
      ['go', true],
      ['kept', false],
    ] as const) {
      const { sent } = await sendUnheard(token)
      site.proxy.up()
      assert.deepEqual(await sent, [{ type: 'signalled', delivered }])
    }
    assert.deepEqual(await inboxOf(worker), [1])
    assert.lengthOf(await site.database.query('select 1 from durable_signals'), 1)
  })

  test('a signal whose commit was never sent is stored all the same', async ({ assert }) => {
    const worker = await waiting()
    await site.store.commit([start('x')])
    const lost = site.proxy.loseAnswer('SELECT')
    const sent = site.store.commit([signal('s1', 'go')])
    await lost
    const { answers } = await sent
    assert.deepEqual(answers, [{ type: 'signalled', delivered: true }])
    assert.deepEqual(await inboxOf(worker), [1])
  })

  test('a signal in doubt whose token others hold is judged once they have let go', async ({
    assert,
  }) => {
    const worker = await waiting()
    const { sent } = await sendUnheard('go')
    await take(worker)
    const holder = await Holder.begin(site.database)
    const { sql, values } = lockTokens(stripesOf(['go']))
    await holder.run(sql.replace('?', '$1'), [...values])
    site.proxy.up()
    const [answer] = await sent
    assert.equal(answer?.type, 'held')
    await holder.rollback()
    const later = await settled(answer!)
    assert.equal(later.type, 'refused')
  })
})
