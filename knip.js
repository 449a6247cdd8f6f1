/** Packages that another one loads by a name in a configuration: no import says so. */
const loadedByName = ['better-sqlite3', 'mysql2', 'pg', 'pino-pretty']

export default {
  ignoreDependencies: loadedByName,
  workspaces: {
    '.': {
      entry: [
        'benchmarks/{main,victim}.ts',
        'bin/test.ts',
        'scripts/*.mjs',
        'scripts/checks/*.mjs',
        'scripts/docs/main.ts',
        'tests/**/*.spec.ts',
        'tests/package/missing_packages.ts',
        'tests/simulation/without_rule.ts',
      ],
      project: ['**/*.{ts,mjs,js}', '!build/**', '!playground/**'],
      ignore: ['build/**'],
    },
    'playground': {
      entry: ['*.{js,mjs,ts}', '{bin,scripts,start}/*.{ts,mjs}'],
      project: ['**/*.{ts,mjs,js}'],
    },
  },
}
