import { test } from '@japa/runner'
import type { ChangeSet } from '../../src/core/change_set.ts'
import type { LucidStore } from '../../src/stores/lucid/lucid_store.ts'
import { newWorker, signalSend } from '../../src/testing/conformance/writes.ts'
import type { PostgresDatabase } from '../stores/postgres_database.ts'
import { Holder, settled, untilWaiting } from '../stores/postgres_gate.ts'
import { usePostgres } from '../stores/postgres_group.ts'
import { Family } from './family.ts'

type Actor = 'the parent suspends' | 'a child ends' | 'its owner is found lost'

interface Variant {
  /** One statement writes what a process has; else a short transaction, as whatever touches signals. */
  isFused: boolean
  /** Whether runs of the lost process count. */
  isCounted: boolean
}

/** Every order of the actors. */
function orders<T>(actors: readonly T[]): T[][] {
  if (actors.length < 2) return [[...actors]]
  return actors.flatMap((first) =>
    orders(actors.filter((actor) => actor !== first)).map((rest) => [first, ...rest])
  )
}

test.group('PostgreSQL: a parent of many children', (group) => {
  let database: PostgresDatabase
  /** Of the process that has the parent, of one that has its children, and of one that recovers. */
  let stores: { parent: LucidStore; children: LucidStore; rescuer: LucidStore }

  usePostgres(group, async (created) => {
    database = created
    const [parent, children, rescuer] = [
      await database.store(),
      await database.store(),
      await database.store(),
    ]
    stores = { parent, children, rescuer }
  })

  async function write(store: LucidStore, changes: ChangeSet): Promise<void> {
    const { answers } = await store.commit([changes])
    for (const answer of answers) await settled(answer)
  }

  /** Waits for its rows longer than a statement may: another pass follows, as in a worker. */
  async function recover(store: LucidStore): Promise<void> {
    await store.recoverExpired().catch(() => store.recoverExpired())
  }

  /** The actors wait for the parent's row in this order, and then all go on; the rest follows without a race. */
  async function play(id: string, params: { order: Actor[] } & Variant) {
    const family = new Family(id)
    await stores.parent.registerWorker(newWorker('w1', { isCounted: params.isCounted }))
    await stores.children.registerWorker(newWorker('w2'))
    await family.begin(stores.parent)
    const [first, second, third, ...running] = await family.claimChildren(stores.children, 'w2')
    if (!first || !second || !third) throw new Error('There are no children')
    for (const child of [first, second]) await write(stores.children, family.endOf(child))
    const parent = await family.claimParent(stores.parent, 'w1')
    if (!parent) throw new Error('The parent is not due')
    const sent = (name: string) => (params.isFused ? {} : { signals: [signalSend(name, 'nobody')] })
    const turn = { ...(await family.turnOf(stores.parent, parent)), ...sent('s1') }
    await database.query(
      `update durable_workers set lease_until = 0 where instance = 'w1'; update durable_workers set lease_until = 9e15 where instance = 'w2'`
    )
    const actors: Record<Actor, () => Promise<void>> = {
      'the parent suspends': () => write(stores.parent, turn),
      'a child ends': () => write(stores.children, { ...family.endOf(third), ...sent('s2') }),
      'its owner is found lost': () => recover(stores.rescuer),
    }
    const holder = await Holder.begin(database)
    await holder.lockRun(id)
    const acting: Promise<void>[] = []
    for (const actor of params.order) {
      acting.push(actors[actor]())
      await untilWaiting(database, acting.length)
    }
    await holder.rollback()
    await Promise.all(acting)
    const stranded = await stores.rescuer.findStranded()
    await stores.rescuer.registerWorker(newWorker('w3'))
    await family.playOut(stores.rescuer, { owner: 'w3', running })
    const end = await stores.rescuer.getRun(id)
    return { stranded, status: end?.status }
  }

  const ACTORS: Actor[] = ['the parent suspends', 'a child ends', 'its owner is found lost']
  const VARIANTS: Record<string, Variant> = {
    'one statement, counted': { isFused: true, isCounted: true },
    'one statement, not counted': { isFused: true, isCounted: false },
    'short transactions, counted': { isFused: false, isCounted: true },
    'short transactions, not counted': { isFused: false, isCounted: false },
  }
  for (const order of orders(ACTORS))
    for (const [name, variant] of Object.entries(VARIANTS))
      test(`${order.join(', ')}: it comes to its end (${name}) (P4)`, async ({ assert }) => {
        const { stranded, status } = await play('p', { order, ...variant })
        assert.deepEqual(stranded, [])
        assert.equal(status, 'completed')
      })
})
