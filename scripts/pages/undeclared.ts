import ts from 'typescript'

const CANNOT_FIND_NAME = new Set([2304, 2552, 2503, 2584, 18004])
const FILE = 'snippet.ts'

/** Names that a module uses and neither declares nor imports, in order of their first use. */
export function undeclaredNames(code: string): string[] {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    moduleDetection: ts.ModuleDetectionKind.Force,
    experimentalDecorators: true,
    lib: ['lib.esnext.d.ts'],
    noResolve: true,
    noEmit: true,
    types: [],
  }
  const host = ts.createCompilerHost(options)
  const source = ts.createSourceFile(FILE, code, ts.ScriptTarget.ESNext, true)
  const read = host.getSourceFile.bind(host)
  host.getSourceFile = (name, ...rest) => (name === FILE ? source : read(name, ...rest))
  const program = ts.createProgram([FILE], options, host)
  const names = program
    .getSemanticDiagnostics(source)
    .filter((diagnostic) => CANNOT_FIND_NAME.has(diagnostic.code))
    .map(({ start = 0, length = 0 }) => code.slice(start, start + length))
  return [...new Set(names)]
}
