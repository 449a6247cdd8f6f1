/** What has to be there. Throws where it is not: a made-up value would do harm unseen. */
export function the<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new TypeError(`A fault in durable: ${what} is missing`)
  return value
}
