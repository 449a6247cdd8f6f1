import { setTimeout as delay } from 'node:timers/promises'

/** Resolves once a condition holds that only looking at the database tells of. */
export async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await delay(2)
}
