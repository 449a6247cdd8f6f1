import type { Facts } from '../facts.ts'
import type { PageApplication } from '../page_application.ts'
import type { PlacedPart } from '../placed_parts.ts'

/** A way to run what snippets show. */
export interface Scenario {
  /** Whether it knows how to run this part. */
  covers: (part: PlacedPart) => boolean
  /** Files of ours that the application needs beside those of every application. */
  files: (facts: Facts) => Record<string, string>
  /** Drives everything to its end, and resolves to what was asserted. Rejects when something does not hold. */
  run: (app: PageApplication, facts: Facts) => Promise<string[]>
}
