/** Calls all of these, in order, though some of them fail; then rejects with the first of the errors. */
export async function cleanUp(...parts: readonly (() => unknown)[]): Promise<void> {
  const errors: unknown[] = []
  for (const part of parts) {
    try {
      await part()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}
