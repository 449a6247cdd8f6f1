import { readFile } from 'node:fs/promises'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { filterProblems, problemKindInfo } from '@arethetypeswrong/core/problems'

/** The package is ESM for Node.js 24 and bundlers: what older resolutions see is no promise of its own. */
const resolutions = ['node16-esm', 'bundler']

const tarball = await readFile(process.argv[2])
const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(tarball)))
if (!analysis.types) {
  throw new Error('The packed tarball contains no types')
}

const problems = new Set(
  resolutions.flatMap((resolutionKind) => filterProblems(analysis, { resolutionKind }))
)
for (const problem of problems) {
  const where = problem.entrypoint ?? problem.fileName ?? problem.typesFileName ?? ''
  console.log(`${where} ${problemKindInfo[problem.kind].shortDescription} (${problem.kind})`)
}
process.exitCode = problems.size > 0 ? 1 : 0
