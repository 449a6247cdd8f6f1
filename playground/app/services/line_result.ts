/** What became of one line of the file. */
export type LineResult =
  | { status: 'imported'; iata: string }
  /** `fields`: what something is wrong with, each once. */
  | { status: 'rejected'; fields: string[] }
