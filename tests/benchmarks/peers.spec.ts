import { test } from '@japa/runner'
import { readFile } from 'node:fs/promises'
import { type Comparison, comparisonLines } from '../../benchmarks/peers/comparison.ts'
import { DBOS, OWN } from '../../benchmarks/peers/peer_subjects.ts'
import { countApart, measureApart } from '../../benchmarks/peers/peer_processes.ts'
import { SKIPPED } from '../stores/postgres_server.ts'

const COMPARISON: Comparison = {
  params: { title: 'W2 two-step runs', counted: 'steps', steps: 2, inFlight: 4 },
  runs: { [OWN]: 20, [DBOS]: 20 },
  label: 'W2 steps/s',
}

test.group('A subject in a process of its own', (group) => {
  group.tap((each) => each.skip(SKIPPED !== null, SKIPPED ?? ''))

  test('executes what is measured after a warm-up, and writes a profile where one is wanted', async ({
    assert,
    fs,
  }) => {
    const profile = `${fs.basePath}/profiles/engine.cpuprofile`
    const params = { ...COMPARISON.params, runs: COMPARISON.runs[OWN], warmUpMs: 50 }
    const { figures, asked } = await measureApart(OWN, { params, profile })
    assert.lengthOf(figures, 2)
    assert.isAbove(asked.runs, 20)
    assert.deepEqual(asked, { runs: asked.runs, completed: asked.runs, records: 2 * asked.runs })
    const { nodes } = JSON.parse(await readFile(profile, 'utf8'))
    assert.isNotEmpty(nodes)
  })

  test('of the engine, the server executes 2 statements for a run of one step alone, and 1 for a further step', async ({
    assert,
  }) => {
    assert.deepEqual(await countApart(OWN), { oneStep: 2, furtherStep: 1 })
  })
})

test.group('Comparison', () => {
  const own = { subject: OWN, rounds: [100, 300, 200].map((rate) => [rate, 1]) }
  const dbos = { subject: DBOS, rounds: [50, 30, 20].map((rate) => [rate, 1]) }

  test('gives the medians, and the median of the ratios of each round', ({ assert }) => {
    const lines = comparisonLines(COMPARISON, [own, dbos])
    assert.equal(lines.at(-1), 'W2 steps/s, this 200 against dbos 30.00: 10.0x')
    assert.include(lines[1], '(100 to 300)  rounds: 100, 300, 200')
  })

  test('has no ratio when one of the two was not measured', ({ assert }) => {
    for (const result of [own, dbos])
      assert.notMatch(comparisonLines(COMPARISON, [result]).join('\n'), /against/)
  })
})
