import assert from 'node:assert/strict'
import type { RunQuery } from '../../contracts/store.ts'
import { cursorOf } from '../../core/run_cursor.ts'
import type { Scenario } from './scenario.ts'
import type { Check } from './suite.ts'
import { claimKeyOf, COMPLETE, FAIL, newRun, parentLink, start } from './writes.ts'

async function pages(db: Scenario, query: RunQuery): Promise<string[][]> {
  const found: string[][] = []
  for (let after: string | undefined; ;) {
    const { runs, next } = await db.store.listRuns({ ...query, after })
    found.push(runs.map(({ id }) => id))
    if (next === null) return found
    after = next
  }
}

async function ids(db: Scenario, query: RunQuery): Promise<string[]> {
  const found = await pages(db, query)
  return found.flat().toSorted()
}

export function readingChecks(check: Check) {
  check('answers null for a run that does not exist', async (db) => {
    assert.equal(await db.store.getRun('unknown'), null)
    assert.deepEqual(await db.store.listRuns({}), { runs: [], next: null })
  })

  check('says where the runs stand that it is asked for', async (db) => {
    await db.turn(await db.running('done'), { end: COMPLETE })
    await db.pending('r1', { workflow: 'export' })
    await db.pending('r2')
    const standings = await db.store.statusesOf(['r1', 'unknown', 'done', 'r1'])
    const body = { phase: 'body', errorCode: null } as const
    assert.deepEqual(
      standings.toSorted((a, b) => (a.runId < b.runId ? -1 : 1)),
      [
        { ...body, runId: 'done', claimKey: claimKeyOf('import'), status: 'completed', token: 1 },
        { ...body, runId: 'r1', claimKey: claimKeyOf('export'), status: 'pending', token: 0 },
      ]
    )
    assert.deepEqual(await db.store.statusesOf([]), [])
  })

  check('gives the errors of the runs that it is asked for, and of no other (P10)', async (db) => {
    await db.turn(await db.running('bad'), { end: FAIL })
    await db.turn(await db.running('worse'), { end: FAIL })
    await db.turn(await db.running('done'), { end: COMPLETE })
    const { error } = await db.row('bad')
    assert.ok(error)
    const asked = ['bad', 'unknown', 'done', 'bad']
    assert.deepEqual(await db.store.errorsOf(asked), [{ runId: 'bad', error }])
    assert.deepEqual(await db.store.errorsOf([]), [])
  })

  check('gives the inputs of the runs that it is asked for, and of no other', async (db) => {
    await db.pending('one', { input: '"first"' })
    await db.pending('other')
    assert.deepEqual(await db.store.inputsOf(['one', 'unknown', 'one']), [
      { runId: 'one', input: '"first"' },
    ])
    assert.deepEqual(await db.store.inputsOf([]), [])
  })

  check('lists the newest first, page by page', async (db) => {
    for (const id of ['r1', 'r2', 'r3', 'r4', 'r5']) {
      await db.pending(id)
      await db.store.advanceClock(1)
    }
    assert.deepEqual(await pages(db, { limit: 2 }), [['r5', 'r4'], ['r3', 'r2'], ['r1']])
    assert.deepEqual(await pages(db, { limit: 5 }), [['r5', 'r4', 'r3', 'r2', 'r1']])
  })

  check('leaves none out and repeats none that were started at one instant', async (db) => {
    const started = Array.from({ length: 25 }, (_, index) => `r${index}`)
    await db.commit(...started.map((id) => start(id)))
    assert.deepEqual(await ids(db, { limit: 4 }), started.toSorted())
  })

  check('keeps its place while newer runs arrive between two pages', async (db) => {
    for (const id of ['r1', 'r2', 'r3']) {
      await db.pending(id)
      await db.store.advanceClock(1)
    }
    const { next } = await db.store.listRuns({ limit: 2 })
    assert.ok(next)
    await db.pending('r4')
    const { runs } = await db.store.listRuns({ limit: 2, after: next })
    assert.deepEqual(
      runs.map(({ id }) => id),
      ['r1']
    )
  })

  check('reads on where any store has left off, and refuses a cursor of nobody', async (db) => {
    for (const id of ['r1', 'r2', 'r3']) {
      await db.pending(id)
      await db.store.advanceClock(1)
    }
    const { id, createdAt } = await db.row('r2')
    const { runs } = await db.store.listRuns({ after: cursorOf({ id, createdAt }) })
    assert.deepEqual(
      runs.map((run) => run.id),
      ['r1']
    )
    for (const after of ['', 'x', `${createdAt}:r2`, `${createdAt} r2`]) {
      await assert.rejects(() => db.store.listRuns({ after }), { code: 'E_INVALID_CURSOR' })
    }
  })

  check('gives 50 runs a page, and never more than 1,000', async (db) => {
    await db.commit(...Array.from({ length: 1_001 }, (_, index) => start(`r${index}`)))
    const page = await db.store.listRuns({})
    assert.equal(page.runs.length, 50)
    const largest = await db.store.listRuns({ limit: 5_000 })
    assert.equal(largest.runs.length, 1_000)
  })

  check('gives one run at least, and leads on from it', async (db) => {
    for (const id of ['r1', 'r2']) {
      await db.pending(id)
      await db.store.advanceClock(1)
    }
    for (const limit of [0, -1, 0.5, 1.5]) {
      assert.deepEqual(await pages(db, { limit }), [['r2'], ['r1']], `limit ${limit}`)
    }
  })

  check('filters by each of its fields and by all of them', async (db) => {
    await db.turn(await db.running('done', { tags: ['blue'] }), { end: COMPLETE })
    await db.turn(await db.running('bad', { tags: ['blue', 'red'] }), { end: FAIL })
    await db.pending('other', { workflow: 'export', namespace: 'eu', tags: ['blue'] })
    await db.pending('child', { parent: parentLink('done') })
    assert.deepEqual(await ids(db, {}), ['bad', 'child', 'done', 'other'])
    assert.deepEqual(await ids(db, { status: 'completed' }), ['done'])
    assert.deepEqual(await ids(db, { workflow: 'export' }), ['other'])
    assert.deepEqual(await ids(db, { namespace: 'eu' }), ['other'])
    assert.deepEqual(await ids(db, { tag: 'blue', limit: 2 }), ['bad', 'done', 'other'])
    assert.deepEqual(await ids(db, { tag: 'blu' }), [])
    assert.deepEqual(await ids(db, { parentId: 'done' }), ['child'])
    assert.deepEqual(await ids(db, { ids: ['bad', 'child', 'unknown'] }), ['bad', 'child'])
    assert.deepEqual(await ids(db, { ids: ['bad', 'child'], tag: 'red' }), ['bad'])
    assert.deepEqual(await ids(db, { ids: [] }), [])
    assert.deepEqual(await ids(db, { status: 'failed', tag: 'red', workflow: 'import' }), ['bad'])
    assert.deepEqual(await ids(db, { status: 'failed', tag: 'red', workflow: 'export' }), [])
  })

  check('lists rows without payloads and tags (P10)', async (db) => {
    await db.turn(await db.running('r1', { tags: ['blue'] }), { end: COMPLETE })
    const { runs } = await db.store.listRuns({})
    const { input, output, error, tags, attributes, ...row } = await db.row('r1')
    assert.deepEqual(runs, [row])
  })

  check('gives away nothing that is its own', async (db) => {
    const run = newRun('r1', { tags: ['blue'], parent: parentLink('p') })
    const { answers } = await db.commit({ type: 'start', run, leaseTo: null })
    const before = structuredClone(await db.row('r1'))
    if (run.parent) run.parent.seq = 99
    const handedOut = await db.row('r1')
    handedOut.tags.push('red')
    handedOut.status = 'dead'
    if (handedOut.parent) handedOut.parent.seq = 99
    if (answers[0]?.type === 'started') answers[0].run.status = 'dead'
    const { runs } = await db.store.listRuns({})
    for (const row of runs) row.status = 'dead'
    assert.deepEqual(await db.row('r1'), before)
  })
}
