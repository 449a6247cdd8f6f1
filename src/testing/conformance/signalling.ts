import assert from 'node:assert/strict'
import type { Check } from './suite.ts'
import { COMPLETE, FAIL, signal, signalSend, SUSPEND, turn, waitForSignal } from './writes.ts'

export function signallingChecks(check: Check) {
  check(
    'keeps a signal that comes before the wait, and gives it to the wait (case 9)',
    async (db) => {
      const { answers } = await db.commit(signal('s1', 'go'))
      assert.deepEqual(answers, [{ type: 'signalled', delivered: false }])
      const row = await db.running('r1')
      const { receivedAt } = await db.store.now().then((now) => ({ receivedAt: now }))
      await db.turn(row, { opened: [waitForSignal(4, 'go')], end: SUSPEND })
      assert.ok(await db.isDue('r1'))
      const [entry] = await db.inbox('r1')
      assert.ok(entry && entry.receivedAt <= receivedAt)
      assert.deepEqual(entry, {
        ...{ kind: 'signal', no: 1, seq: 4, signalId: 's1', token: 'go', payload: '{"v":"s1"}' },
        receivedAt: entry.receivedAt,
      })
      assert.deepEqual(await db.keptOf('go'), [])
    }
  )

  check('gives a signal to a suspended run and makes it due', async (db) => {
    await db.waiting('r1', 'go')
    const { answers } = await db.commit(signal('s1', 'go'))
    assert.deepEqual(answers, [{ type: 'signalled', delivered: true }])
    assert.ok(await db.isDue('r1'))
    assert.deepEqual(await db.signalsOf('r1'), ['s1'])
  })

  check('wakes a run that is suspending while its signal comes (case 9)', async (db) => {
    for (const order of ['signal first', 'wait first']) {
      const row = await db.running(order)
      const wait = turn(row, { opened: [waitForSignal(0, order)], end: SUSPEND })
      const sent = signal('s1', order)
      await db.commit(...(order === 'signal first' ? [sent, wait] : [wait, sent]))
      assert.ok(await db.isDue(order), order)
      assert.deepEqual(await db.signalsOf(order), ['s1'])
    }
  })

  check('never lets a signal and its wait miss each other on two connections', async (db) => {
    const other = await db.another()
    for (let round = 0; round < 10; round++) {
      const token = `round ${round}`
      const row = await db.running(token)
      const wait = turn(row, { opened: [waitForSignal(0, token)], end: SUSPEND })
      await Promise.all([other.commit([signal('s1', token)]), db.store.commit([wait])])
      assert.deepEqual(await db.signalsOf(token), ['s1'])
      assert.ok(await db.isDue(token))
    }
  })

  check('keeps the order of signals sent at once and one after the other (case 9)', async (db) => {
    await db.commit(signal('b', 'go'), signal('a', 'go'))
    await db.commit(signal('0', 'go'))
    await db.store.advanceClock(1)
    await db.commit(signal('9', 'go'))
    assert.deepEqual(await db.keptOf('go'), ['b', 'a', '0', '9'])
  })

  check('gives two signals of one batch to the two waits of one run, in order', async (db) => {
    const row = await db.running('r1')
    await db.turn(row, { opened: [waitForSignal(3, 'go'), waitForSignal(12, 'go')] })
    await db.commit(signal('s1', 'go'), signal('s2', 'go'), signal('s3', 'go'))
    const inbox = await db.inbox('r1')
    assert.deepEqual(
      inbox.map((entry) => [entry.no, entry.seq, entry.kind === 'signal' && entry.signalId]),
      [
        [1, 3, 's1'],
        [2, 12, 's2'],
      ]
    )
    assert.deepEqual(await db.keptOf('go'), ['s3'])
  })

  check('serves runs in order of registration, and loses no wait (case 12)', async (db) => {
    for (const id of ['zebra', 'ape', 'mole']) await db.waiting(id, 'go')
    await db.commit(signal('s1', 'go'))
    await db.commit(signal('s2', 'go'), signal('s3', 'go'))
    assert.deepEqual(await db.signalsOf('zebra'), ['s1'])
    assert.deepEqual(await db.signalsOf('ape'), ['s2'])
    assert.deepEqual(await db.signalsOf('mole'), ['s3'])
  })

  check('serves waits that were registered in one flush in the order of its writes', async (db) => {
    const [z, a] = [await db.running('z'), await db.running('a')]
    const opened = [waitForSignal(0, 'go')]
    await db.commit(turn(z, { opened, end: SUSPEND }), turn(a, { opened, end: SUSPEND }))
    await db.commit(signal('s1', 'go'))
    assert.deepEqual([await db.signalsOf('z'), await db.signalsOf('a')], [['s1'], []])
    await db.commit(signal('s2', 'go'))
    assert.deepEqual(await db.signalsOf('a'), ['s2'])
  })

  check('gives a kept signal to one of two waits', async (db) => {
    await db.commit(signal('s1', 'go'))
    const [first, second] = [await db.running('r1'), await db.running('r2')]
    const opened = [waitForSignal(0, 'go')]
    await db.commit(turn(first, { opened, end: SUSPEND }), turn(second, { opened, end: SUSPEND }))
    assert.deepEqual([await db.signalsOf('r1'), await db.signalsOf('r2')], [['s1'], []])
  })

  check('delivers an id once, in one batch and across batches', async (db) => {
    await db.commit(signal('s1', 'go'), signal('s1', 'go'))
    const { answers } = await db.commit(signal('s1', 'go'))
    assert.deepEqual(answers, [{ type: 'signalled', delivered: false }])
    const row = await db.running('r1')
    await db.turn(row, { opened: [waitForSignal(0, 'go'), waitForSignal(1, 'go')] })
    const again = await db.commit(signal('s1', 'go'), signal('s1', 'other'))
    assert.deepEqual(again.answers, [
      { type: 'signalled', delivered: true },
      { type: 'signalled', delivered: false },
    ])
    assert.deepEqual(await db.signalsOf('r1'), ['s1'])
    assert.deepEqual(await db.keptOf('other'), ['s1'])
  })

  check('delivers an id once that comes twice in one batch while two wait', async (db) => {
    for (const id of ['r1', 'r2']) await db.waiting(id, 'go')
    const { answers } = await db.commit(signal('s1', 'go'), signal('s1', 'go'))
    const delivered = { type: 'signalled', delivered: true }
    assert.deepEqual(answers, [delivered, delivered])
    assert.deepEqual([await db.signalsOf('r1'), await db.signalsOf('r2')], [['s1'], []])
  })

  check('gives a signal that met a closed wait to the next who waits (case 12)', async (db) => {
    const first = await db.running('r1')
    await db.turn(first, { opened: [waitForSignal(0, 'go')] })
    await db.waiting('r2', 'go')
    await db.commit(signal('s1', 'go'))
    await db.turn(first, { closed: [0], end: { ...SUSPEND, dueIn: 0 } })
    assert.deepEqual([await db.signalsOf('r1'), await db.signalsOf('r2')], [[], ['s1']])
    assert.ok(await db.isDue('r2'))
  })

  check('does the same when signal and closing come in one flush, in either order', async (db) => {
    const closings = {
      'closed': { closed: [0] },
      'ended': { end: COMPLETE },
      'closed and ended': { closed: [0], end: FAIL },
    }
    for (const [title, changes] of Object.entries(closings)) {
      for (const order of ['signal first', `${title} first`]) {
        const token = `${title}, ${order}`
        const row = await db.running(token)
        await db.turn(row, { opened: [waitForSignal(0, token)] })
        await db.waiting(`next: ${token}`, token)
        const [closing, sent] = [turn(row, changes), signal('s1', token)]
        await db.commit(...(order === 'signal first' ? [sent, closing] : [closing, sent]))
        assert.deepEqual(await db.signalsOf(`next: ${token}`), ['s1'], token)
        assert.deepEqual(await db.inbox(row.id), [], token)
      }
    }
  })

  check('gives back once what a run leaves unread, whatever change sets it ends in', async (db) => {
    const row = await db.running('r1')
    await db.turn(row, { opened: [waitForSignal(0, 'go'), waitForSignal(1, 'go')] })
    await db.commit(signal('s1', 'go'), signal('s2', 'go'))
    for (const id of ['r2', 'r3', 'r4']) await db.waiting(id, 'go')
    await db.commit(turn(row, { closed: [0] }), turn(row, { closed: [1], end: COMPLETE }))
    assert.deepEqual(await db.inbox('r1'), [])
    const received = [await db.signalsOf('r2'), await db.signalsOf('r3'), await db.signalsOf('r4')]
    assert.deepEqual(received, [['s1'], ['s2'], []])
  })

  check('keeps a signal that an ending turn would still have waited for', async (db) => {
    await db.commit(signal('s1', 'go'))
    await db.turn(await db.running('r1'), { opened: [waitForSignal(0, 'go')], end: COMPLETE })
    await db.commit(signal('s2', 'go'))
    assert.deepEqual(await db.store.getHistory('r1'), { records: [], waits: [] })
    assert.deepEqual(await db.keptOf('go'), ['s1', 's2'])
  })

  check('keeps a signal that nobody else waits for when its run ends', async (db) => {
    for (const end of [COMPLETE, FAIL]) {
      const row = await db.running(end.kind)
      await db.turn(row, { opened: [waitForSignal(0, end.kind)] })
      await db.commit(signal('s1', end.kind), signal('s2', end.kind))
      await db.turn(row, { end })
      assert.deepEqual(await db.inbox(row.id), [])
      assert.deepEqual(await db.keptOf(end.kind), ['s1', 's2'])
    }
  })

  check('never offers a closed wait, or one of an ended run', async (db) => {
    const closing = await db.running('r1')
    await db.turn(closing, { opened: [waitForSignal(0, 'go')] })
    await db.turn(closing, { closed: [0] })
    const ending = await db.running('r2')
    await db.turn(ending, { opened: [waitForSignal(0, 'go')] })
    await db.turn(ending, { end: COMPLETE })
    const { answers } = await db.commit(signal('s1', 'go'))
    assert.deepEqual(answers, [{ type: 'signalled', delivered: false }])
    assert.deepEqual(await db.inbox('r1'), [])
    assert.deepEqual(await db.keptOf('go'), ['s1'])
  })

  check('takes a signal back that a turn has read and cannot use', async (db) => {
    const row = await db.running('r1')
    await db.turn(row, { opened: [waitForSignal(0, 'go')] })
    await db.commit(signal('s1', 'go'))
    await db.store.advanceClock(10)
    await db.commit(signal('s2', 'go'))
    const [entry] = await db.inbox('r1')
    assert.ok(entry?.kind === 'signal')
    await db.turn(row, { seenInbox: 1, closed: [0], returned: [entry] })
    assert.deepEqual(await db.inbox('r1'), [])
    assert.deepEqual(await db.keptOf('go'), ['s1', 's2'])
  })

  check(
    'gives what a turn returns to the next who waits, before what it has not read',
    async (db) => {
      const row = await db.running('r1')
      await db.turn(row, { opened: [waitForSignal(0, 'go'), waitForSignal(1, 'go')] })
      await db.commit(signal('s1', 'go'), signal('s2', 'go'))
      for (const id of ['r2', 'r3']) await db.waiting(id, 'go')
      const [entry] = await db.inbox('r1')
      assert.ok(entry?.kind === 'signal')
      await db.turn(row, { seenInbox: 1, closed: [0, 1], returned: [entry], end: COMPLETE })
      assert.deepEqual([await db.signalsOf('r2'), await db.signalsOf('r3')], [['s1'], ['s2']])
    }
  )

  check('gives a signal back once that a turn reads while its wait is being closed', async (db) => {
    for (const flushes of ['one flush', 'two flushes']) {
      const row = await db.running(flushes)
      await db.turn(row, { opened: [waitForSignal(0, flushes)] })
      await db.commit(signal('s1', flushes))
      const [entry] = await db.inbox(row.id)
      assert.ok(entry?.kind === 'signal')
      for (const id of [`second in ${flushes}`, `third in ${flushes}`])
        await db.waiting(id, flushes)
      const closing = turn(row, { closed: [0] })
      const returning = turn(row, { seenInbox: 1, returned: [entry], end: COMPLETE })
      if (flushes === 'two flushes') await db.commit(closing)
      await db.commit(...(flushes === 'two flushes' ? [returning] : [closing, returning]))
      assert.deepEqual(await db.signalsOf(`second in ${flushes}`), ['s1'])
      assert.deepEqual(await db.signalsOf(`third in ${flushes}`), [])
    }
  })

  check('sends the signals of a turn with its commit, to itself too', async (db) => {
    await db.waiting('r2', 'other')
    const row = await db.running('r1')
    await db.turn(row, {
      opened: [waitForSignal(0, 'self')],
      signals: [signalSend('s1', 'other'), signalSend('s2', 'self'), signalSend('s3', 'nobody')],
      end: SUSPEND,
    })
    assert.deepEqual(await db.signalsOf('r2'), ['s1'])
    assert.deepEqual(await db.signalsOf('r1'), ['s2'])
    assert.ok(await db.isDue('r1'))
    assert.deepEqual(await db.keptOf('nobody'), ['s3'])
  })

  check('keeps tokens apart that differ in case or by a trailing character only', async (db) => {
    const tokens = ['Order-1', 'order-1', 'order-1.']
    for (const token of tokens) await db.waiting(`waits for ${token}`, token)
    await db.commit(...tokens.map((token) => signal(token, token)))
    for (const token of tokens) assert.deepEqual(await db.signalsOf(`waits for ${token}`), [token])
  })
}
