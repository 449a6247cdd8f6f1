/** An object's own data property, turned into a pair that reports writes and keeps the value. */
function watchProperty(
  instance: object,
  key: string | symbol,
  report: (key: string) => void
): void {
  const descriptor = Reflect.getOwnPropertyDescriptor(instance, key)
  if (!descriptor || !('value' in descriptor) || !descriptor.writable || !descriptor.configurable)
    return
  let value: unknown = descriptor.value
  Object.defineProperty(instance, key, {
    configurable: true,
    enumerable: descriptor.enumerable ?? true,
    get: () => value,
    set: (next: unknown) => {
      report(String(key))
      value = next
    },
  })
}

/**
 * Calls `report`, once for each property, when something is written to `instance` from now on; the writes are done
 * all the same. Not seen: private (`#`) fields.
 *
 * The instance itself stays what it is, since a Proxy around it could not reach its private fields: its own
 * properties become accessors, and new ones are caught by a Proxy in its prototype chain.
 */
export function reportWrites(instance: object, report: (key: string) => void): void {
  if (!Object.isExtensible(instance)) return
  const reported = new Set<string>()
  const reportOnce = (key: string) => {
    if (reported.has(key)) return
    reported.add(key)
    report(key)
  }

  for (const key of Reflect.ownKeys(instance)) watchProperty(instance, key, reportOnce)

  const prototype = Object.create(Object.getPrototypeOf(instance))
  Object.setPrototypeOf(
    instance,
    new Proxy(prototype, {
      set(target, key, value, receiver) {
        reportOnce(String(key))
        return Reflect.set(target, key, value, receiver)
      },
    })
  )
}
