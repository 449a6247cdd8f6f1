/**
 * Packages that no import names: a driver that Lucid loads by the name in a configuration, and what the applications
 * that tests write import.
 */
const loadedByName = ['better-sqlite3', 'mysql2', 'reflect-metadata']

/** The import map of the playground, with sources in place of built files. */
const playgroundPaths = Object.fromEntries(
  ['exceptions', 'models', 'services', 'steps', 'validators', 'workflows'].map((name) => [
    `#${name}/*`,
    [`app/${name}/*.ts`],
  ])
)

export default {
  ignoreDependencies: loadedByName,
  workspaces: {
    '.': {
      entry: [
        'benchmarks/{main,victim,peers/peer_process}.ts',
        'bin/test.ts',
        'scripts/*.mjs',
        'scripts/checks/*.mjs',
        'scripts/pages/main.ts',
        'src/worker/watchdog_thread.ts',
        'tests/**/*.spec.ts',
        'tests/package/missing_packages.ts',
        'tests/simulation/without_rule.ts',
      ],
      project: ['**/*.{ts,mjs,js}', '!build/**', '!playground/**'],
      ignore: ['build/**'],
    },
    'playground': {
      entry: [
        '*.{js,mjs,ts}',
        '{bin,commands,config,scripts,start}/*.{ts,mjs}',
        'app/{steps,workflows}/*.ts',
        'demo/fixed/*.ts',
        'database/migrations/*.ts',
      ],
      project: ['**/*.{ts,mjs,js}'],
      paths: playgroundPaths,
    },
  },
}
