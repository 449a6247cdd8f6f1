import { type Channel, channel } from 'node:diagnostics_channel'

const channels = new Map<string, Channel>()

/**
 * Publishes what happens to a run on the diagnostics channel of the event, `agora:durable:<name>`: for subscribers of
 * the whole process, whichever engine it was. Without any it costs nothing. A subscriber that throws ends up in Node's
 * `uncaughtException`, and never in the engine.
 *
 * @param name name of the event, such as `run.routed`
 */
export function publish(name: string, event: object): void {
  const known = channels.get(name) ?? channel(`agora:durable:${name}`)
  channels.set(name, known)
  if (known.hasSubscribers) known.publish(event)
}
