import assert from 'node:assert/strict'
import type { CancelWrite, NewChild } from '../../core/change_set.ts'
import type { ParentLink } from '../../core/run.ts'
import type { Scenario } from './scenario.ts'
import type { Check } from './suite.ts'
import {
  BLOCK,
  cancel,
  claimKeyOf,
  COMPLETE,
  FAIL,
  newRun,
  parentLink,
  record,
  signal,
  sleep,
  SUSPEND,
  suspendOnEnds,
  turn,
  waitForChild,
  waitForSignal,
} from './writes.ts'

function childOf(runId: string, id: string, link: Partial<ParentLink> = {}): NewChild {
  return { run: newRun(id, { parent: parentLink(runId, link) }), acknowledge: false }
}

/** More than a store finds in a few looks, one at each. */
const MANY = 25

/** A run in each state that can be cancelled. */
const STATES: Record<string, (db: Scenario) => Promise<unknown>> = {
  pending: (db) => db.pending('r'),
  running: (db) => db.running('r'),
  suspended: async (db) => {
    const opened = [sleep(0, 5_000), waitForSignal(1, 'go')]
    return db.turn(await db.running('r'), { opened, end: { ...SUSPEND, dueIn: 5_000 } })
  },
  blocked: async (db) => db.turn(await db.running('r'), { end: BLOCK }),
}

/** p awaits c and only starts s; c awaits g. All but s are leased to w1, p and c have opened their waits. */
async function threeLevels(db: Scenario) {
  const p = await db.running('p')
  const children = [childOf('p', 'c'), childOf('p', 's', { seq: 1, awaited: false })]
  await db.turn(p, { opened: [waitForChild(0, 'c')], children })
  const [c, s] = await db.claim()
  assert.ok(c && s)
  await db.turn(c, { opened: [waitForChild(0, 'g')], children: [childOf('c', 'g')] })
  const [g] = await db.claim()
  assert.ok(g)
  return { p, c, s, g }
}

export function cancellingChecks(check: Check) {
  for (const [status, make] of Object.entries(STATES))
    check(`ends a run that is ${status}, under a token of its own (P1)`, async (db) => {
      await make(db)
      const before = await db.row('r')
      assert.equal(before.status, status)
      const write = cancel('r')
      const { answers, news } = await db.commit(write)
      const [answer] = answers
      assert.ok(answer?.type === 'cancelled' && answer.outcome === 'cancelled')
      assert.deepEqual(
        answer.runs?.map(({ id }) => id),
        ['r']
      )
      const after = await db.row('r')
      assert.deepEqual(
        [after.status, after.token, after.owner, after.dueAt, after.wakeSeq],
        ['cancelled', before.token + 1, null, null, null]
      )
      assert.deepEqual([after.error, after.errorCode], [write.error, write.errorCode])
      assert.ok(after.endedAt !== null)
      assert.deepEqual([...news.ended], ['r'])
      const isHad = status === 'running' || status === 'suspended'
      const revoked = isHad ? [['r', after.token]] : []
      assert.deepEqual([...news.revoked], revoked, 'a worker may have it in memory')
      assert.deepEqual(await db.waits('r'), [])
      assert.deepEqual(await db.claimedIds(), [])
      const late = turn(before, { records: [record(9)], end: COMPLETE })
      assert.deepEqual(await db.answers(late), ['lost'])
      const { history } = await db.load('r')
      assert.deepEqual(history, [])
    })

  check('does nothing to a run that has ended, and says whether there is one (P6)', async (db) => {
    await db.turn(await db.running('r'), { end: COMPLETE })
    const before = await db.row('r')
    const { answers, news } = await db.commit(cancel('r'), cancel('nobody'))
    assert.deepEqual(
      answers.map((answer) => answer.type === 'cancelled' && answer.outcome),
      ['over', 'unknown']
    )
    assert.deepEqual([...news.ended, ...news.revoked.keys()], [])
    assert.deepEqual(await db.row('r'), before)
  })

  check('makes a run due that is to undo its steps first', async (db) => {
    const row = await db.running('r')
    await db.turn(row, { records: [record(0)], opened: [waitForSignal(1, 'go')] })
    const write = cancel('r', { compensate: true })
    const { answers, news } = await db.commit(write)
    const [answer] = answers
    assert.ok(answer?.type === 'cancelled' && answer.outcome === 'unwinding')
    assert.deepEqual([[...news.revoked], [...news.ended]], [[['r', row.token + 1]], []])
    assert.equal(news.due.size, 1)
    const after = await db.row('r')
    assert.deepEqual(
      [after.status, after.phase, after.owner, after.token, after.endedAt],
      ['suspended', 'unwinding', null, row.token + 1, null]
    )
    assert.ok(await db.isDue('r'))
    assert.deepEqual(await db.answers(turn(row, { end: COMPLETE })), ['lost'])
    await db.commit(write)
    const [claimed] = await db.claim()
    assert.ok(claimed)
    const again = await db.commit(write)
    assert.deepEqual([...again.news.revoked], [], 'asked for again, it goes on')
    assert.deepEqual([claimed.phase, claimed.errorCode], ['unwinding', write.errorCode])
    const loaded = await db.load('r')
    assert.deepEqual([loaded.error, loaded.history.length], [write.error, 1])
    const end = { kind: 'cancel', error: write.error, errorCode: write.errorCode } as const
    await db.turn(claimed, { closed: [1], end })
    assert.equal(await db.field('r', 'status'), 'cancelled')
  })

  check('ends a run at once that has done nothing there is to undo', async (db) => {
    await db.pending('r')
    const { answers } = await db.commit(cancel('r', { compensate: true }))
    const [answer] = answers
    assert.ok(answer?.type === 'cancelled' && answer.outcome === 'cancelled')
    assert.equal(await db.field('r', 'status'), 'cancelled')
  })

  check('ends a run for its time only while the body is not over then', async (db) => {
    const opened = [sleep(1, 500_000)]
    const body = await db.running('body', { timeoutMs: 1_000 })
    await db.turn(body, { opened, children: [childOf('body', 'c')], end: SUSPEND })
    const undoing = await db.running('undoing', { timeoutMs: 1_000 })
    const writes = ['body', 'undoing'].map((id) => cancel(id, { ifOverdue: true }))
    const outcomes = async () => {
      const { answers } = await db.commit(...writes)
      return answers.map((answer) => answer.type === 'cancelled' && answer.outcome)
    }
    assert.deepEqual(await outcomes(), ['over', 'over'])
    await db.store.advanceClock(1_000)
    await db.turn(undoing, { end: { ...FAIL, kind: 'unwind' } })
    assert.deepEqual(await outcomes(), ['cancelled', 'over'])
    assert.equal(await db.field('c', 'status'), 'cancelled')
    assert.deepEqual(
      [await db.field('undoing', 'status'), await db.field('undoing', 'phase')],
      ['running', 'unwinding']
    )
  })

  check(
    'takes the awaited children at every level, and not those only started (case 27)',
    async (db) => {
      const { p, c, s, g } = await threeLevels(db)
      const { answers, news } = await db.commit(cancel('p'))
      const [answer] = answers
      assert.ok(answer?.type === 'cancelled')
      assert.deepEqual(answer.runs?.map(({ id }) => id).sort(), ['c', 'g', 'p'])
      assert.deepEqual([...news.revoked.keys()].sort(), ['c', 'g', 'p'])
      assert.deepEqual([...news.ended].sort(), ['c', 'g', 'p'])
      for (const id of ['p', 'c', 'g']) {
        const row = await db.row(id)
        assert.deepEqual([row.status, row.error], ['cancelled', cancel('p').error])
      }
      const late = [p, c, g].map((row) => turn(row, { end: COMPLETE }))
      assert.deepEqual(await db.answers(...late), ['lost', 'lost', 'lost'])
      assert.equal(await db.field('s', 'status'), 'running')
      await db.turn(s, { end: COMPLETE })
    }
  )

  check('has the awaited children undo their steps too, those that have begun', async (db) => {
    const { s } = await threeLevels(db)
    await db.commit(turn(s, { end: COMPLETE }))
    const { news } = await db.commit(cancel('p', { compensate: true }))
    assert.deepEqual([...news.revoked.keys()].sort(), ['c', 'g', 'p'])
    for (const id of ['p', 'c', 'g']) {
      const row = await db.row(id)
      assert.deepEqual([row.status, row.phase], ['suspended', 'unwinding'])
    }
    const rows = await db.claim()
    const end = { kind: 'cancel', error: '{}', errorCode: 'cancelled' } as const
    const [g, c, p] = ['g', 'c', 'p'].map((id) => rows.find((row) => row.id === id))
    assert.ok(g && c && p)
    await db.turn(g, { end })
    assert.equal(await db.field('c', 'inboxSeq'), 1, 'its parent is told, which undoes its own')
    await db.turn(c, { seenInbox: 1, closed: [0], end })
    await db.turn(p, { seenInbox: 1, closed: [0], end })
  })

  check('takes the children that the same batch starts', async (db) => {
    const p = await db.running('p')
    const children = [childOf('p', 'c'), childOf('p', 's', { seq: 1, awaited: false })]
    const { answers, news } = await db.commit(
      turn(p, { opened: [waitForChild(0, 'c')], children, end: suspendOnEnds(1) }),
      cancel('p')
    )
    assert.deepEqual(
      answers.map(({ type }) => type),
      ['committed', 'cancelled']
    )
    assert.deepEqual([...news.ended].sort(), ['c', 'p'])
    assert.equal(await db.field('c', 'status'), 'cancelled')
    assert.deepEqual(await db.claimedIds(), ['s'])
  })

  check('tells a parent that awaits the run, which reads the outcome', async (db) => {
    const p = await db.running('p')
    const child = childOf('p', 'c', { failFast: true })
    await db.turn(p, { opened: [waitForChild(0, 'c')], children: [child], end: suspendOnEnds(1) })
    await db.commit(cancel('c'))
    assert.ok(await db.isDue('p'))
    const [entry] = await db.inbox('p')
    assert.ok(entry?.kind === 'child')
    assert.deepEqual([entry.childId, entry.event], ['c', 'failed'])
    const { error } = cancel('c')
    assert.deepEqual(await db.store.childOutcomes({ runId: 'p', seq: 0 }), [
      { index: 0, runId: 'c', status: 'cancelled', output: null, error },
    ])
  })

  check('tells a cancelled parent nothing of the end of a child', async (db) => {
    const family = await db.family('p', { count: 2 })
    const [first] = family
    assert.ok(first)
    await db.commit(turn(first, { end: COMPLETE }), cancel('p'))
    const row = await db.row('p')
    assert.deepEqual([row.status, row.dueAt], ['cancelled', null])
    assert.deepEqual(await db.inbox('p'), [])
    assert.equal(await db.field('p.0', 'status'), 'completed')
    assert.equal(await db.field('p.1', 'status'), 'cancelled')
  })

  check('gives back the signals that the run has not read, in their order', async (db) => {
    await db.waiting('r', 'go')
    await db.commit(signal('s1', 'go'))
    await db.commit(signal('s2', 'go'))
    await db.commit(cancel('r'))
    assert.deepEqual(await db.inbox('r'), [])
    assert.deepEqual(await db.keptOf('go'), ['s1', 's2'])
  })

  check(
    'gives an unread signal to the next who waits, and one it has read to nobody',
    async (db) => {
      const row = await db.running('r')
      await db.turn(row, { opened: [waitForSignal(0, 'go'), waitForSignal(1, 'on')] })
      await db.commit(signal('read', 'go'), signal('unread', 'on'))
      await db.waiting('other', 'on')
      await db.commit(
        turn(row, { records: [record(0)], closed: [0], seenInbox: 1 }),
        signal('in the batch', 'go'),
        cancel('r')
      )
      assert.deepEqual(await db.signalsOf('other'), ['unread'])
      assert.deepEqual(await db.keptOf('go'), ['in the batch'])
    }
  )

  check('gives back what many runs have not read, of a token each', async (db) => {
    const ids = Array.from({ length: MANY }, (_, index) => `r${index}`)
    for (const id of ids) await db.waiting(id, `for ${id}`)
    await db.commit(...ids.map((id) => signal(`to ${id}`, `for ${id}`)))
    const cancels = ids.map((id) => cancel(id))
    assert.deepEqual(new Set(await db.answers(...cancels)), new Set(['cancelled']))
    for (const id of ids) assert.deepEqual(await db.keptOf(`for ${id}`), [`to ${id}`])
  })

  check('gives back what one run has not read, of many tokens', async (db) => {
    const tokens = Array.from({ length: MANY }, (_, index) => `t${index}`)
    const opened = tokens.map((token, seq) => waitForSignal(seq, token))
    await db.turn(await db.running('r'), { opened, end: SUSPEND })
    await db.commit(...tokens.map((token) => signal(`on ${token}`, token)))
    assert.deepEqual(await db.answers(cancel('r')), ['cancelled'])
    for (const token of tokens) assert.deepEqual(await db.keptOf(token), [`on ${token}`])
  })

  check('takes a chain of awaited children, however long', async (db) => {
    let parent = await db.running('c0')
    for (let level = 1; level <= MANY; level++) {
      const id = `c${level}`
      const children = [childOf(parent.id, id)]
      await db.turn(parent, { opened: [waitForChild(0, id)], children, end: suspendOnEnds(1) })
      const [child] = await db.claim()
      assert.ok(child)
      parent = child
    }
    const { answers } = await db.commit(cancel('c0'))
    const [answer] = answers
    assert.ok(answer?.type === 'cancelled')
    assert.equal(answer.runs?.length, MANY + 1)
    assert.equal(await db.field(parent.id, 'status'), 'cancelled')
  })

  const orders: [string, (write: CancelWrite, db: Scenario) => Promise<unknown>][] = [
    [
      'first: the completion is refused',
      async (write, db) => {
        const row = await db.row('c')
        assert.deepEqual(await db.answers(write, turn(row, { end: COMPLETE })), [
          'cancelled',
          'lost',
        ])
        assert.deepEqual(
          [await db.field('c', 'status'), await db.field('c', 'output')],
          ['cancelled', null]
        )
      },
    ],
    [
      'last: it finds the run over',
      async (write, db) => {
        const row = await db.row('c')
        const { answers } = await db.commit(turn(row, { end: COMPLETE }), write)
        const [turned, asked] = answers
        assert.equal(turned?.type, 'committed')
        assert.ok(asked?.type === 'cancelled' && asked.outcome === 'over')
        assert.deepEqual(
          [await db.field('c', 'status'), await db.field('c', 'output')],
          ['completed', COMPLETE.output]
        )
      },
    ],
  ]
  for (const [title, commit] of orders)
    check(
      `in one batch with the completion, ${title}, and the parent is told once (case 28)`,
      async (db) => {
        const p = await db.running('p')
        await db.turn(p, {
          opened: [waitForChild(0, 'c')],
          children: [childOf('p', 'c')],
          end: suspendOnEnds(1),
        })
        assert.deepEqual(await db.claimedIds({ claimKeys: [claimKeyOf('import')] }), ['c'])
        await commit(cancel('c'), db)
        assert.deepEqual(await db.numbersOf('p'), [1])
        assert.ok(await db.isDue('p'))
      }
    )
}
