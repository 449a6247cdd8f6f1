/** Packages that only the code for one store or transport may know. */
const drivers = '(@adonisjs/lucid|@types/pg|better-sqlite3|knex|mysql2|pg)'
const redisClients = '(@adonisjs/redis|@types/ioredis|ioredis|redis)'

/**
 * The layers of `src/`, each with those of the package's own files that it may import beside itself.
 * A folder or file that is in no layer is an error. `errors.ts` may be imported from everywhere
 * but `contracts`, which are types.
 */
const layers = {
  errors: { is: 'errors\\.ts$', imports: [] },
  channels: { is: 'channels\\.ts$', imports: ['core', 'contracts'] },
  core: { is: 'core/', imports: ['errors'] },
  contracts: { is: 'contracts/', imports: ['core'] },
  replay: { is: 'replay/', imports: ['core', 'contracts', 'errors', 'types'] },
  engine: {
    is: 'engine/',
    imports: ['core', 'replay', 'contracts', 'errors', 'channels', 'types', 'options'],
  },
  maintenance: {
    is: 'maintenance/',
    imports: ['core', 'contracts', 'engine', 'errors', 'channels'],
  },
  worker: {
    is: 'worker/',
    imports: [
      'core',
      'contracts',
      'engine',
      'maintenance',
      'errors',
      'channels',
      'types',
      'options',
    ],
  },
  stores: { is: 'stores/', imports: ['core', 'contracts', 'errors'] },
  transports: { is: 'transports/', imports: ['core', 'contracts', 'errors'] },
  testing: {
    is: 'testing/',
    imports: ['core', 'contracts', 'engine', 'stores', 'errors', 'types'],
  },
  dashboard: { is: 'dashboard/', imports: ['facade', 'contracts', 'channels', 'errors'] },
  otel: { is: 'otel\\.ts$', imports: ['facade', 'contracts', 'channels', 'errors'] },
  metrics: { is: 'metrics\\.ts$', imports: ['facade', 'contracts', 'channels', 'errors'] },
  types: { is: 'types/(?!main\\.ts$)', imports: ['core', 'contracts', 'errors'] },
  authoring: {
    is: '(step|on_error|base_workflow|workflow_ref)\\.ts$',
    imports: ['core', 'contracts', 'engine', 'errors', 'types'],
  },
  options: {
    is: '(options|option_table)\\.ts$',
    imports: ['core', 'contracts', 'errors', 'types'],
  },
  type_entry: { is: 'types/main\\.ts$', imports: ['everything'] },
  setup: { is: 'configure/', imports: [] },
  commands: { is: 'commands/', imports: ['core', 'contracts', 'engine', 'errors'] },
  configuration: { is: 'define_config\\.ts$', imports: ['everything'] },
}

/** Parts of layers that readers may import without the rest. */
const parts = { facade: 'engine/engine\\.ts$', everything: '' }

const product = '^(src|providers|services|commands|stubs)/|^(index|configure)\\.ts$'

function pathOf(name) {
  return `^src/${parts[name] ?? layers[name].is}`
}

const layerRules = Object.entries(layers).map(([name, layer]) => ({
  name: `layer-${name}`,
  comment: `${name} imports only itself and: ${layer.imports.join(', ') || 'nothing'}`,
  severity: 'error',
  from: { path: pathOf(name) },
  to: { path: '^src/', pathNot: [pathOf(name), ...layer.imports.map(pathOf)] },
}))

function forbid(name, comment, from, to) {
  return { name, comment, severity: 'error', from, to }
}

export default {
  forbidden: [
    ...layerRules,
    forbid(
      'no-file-outside-the-layers',
      'Every file of src belongs to a layer: add the layer to this table.',
      { path: '^src/', pathNot: Object.keys(layers).map(pathOf) },
      {}
    ),
    forbid(
      'no-import-from-outside-the-layers',
      'Every file of src belongs to a layer: add the layer to this table.',
      {},
      { path: '^src/', pathNot: Object.keys(layers).map(pathOf) }
    ),
    forbid(
      'core-is-pure',
      'core imports no package but the one that serialises, and nothing of Node.js.',
      { path: '^src/core/' },
      { pathNot: ['^src/', '^node_modules/superjson/'] }
    ),
    forbid(
      'replay-is-pure',
      'replay imports no package and nothing of Node.js.',
      { path: '^src/replay/' },
      { pathNot: '^src/' }
    ),
    forbid(
      'contracts-are-types',
      'Contracts import types only.',
      { path: '^src/contracts/' },
      { path: '^src/(?!contracts/)', dependencyTypesNot: ['type-only'] }
    ),
    forbid(
      'stores-stand-alone',
      'A store does not know another store.',
      { path: '^src/stores/([^/.]+)' },
      { path: '^src/stores/', pathNot: '^src/stores/$1[/.]' }
    ),
    forbid(
      'transports-stand-alone',
      'A transport does not know another transport: they share the envelope.',
      { path: '^src/transports/([^/.]+)' },
      { path: '^src/transports/', pathNot: ['^src/transports/$1[/.]', '^src/transports/envelope'] }
    ),
    forbid(
      'databases-only-in-their-drivers',
      'Only stores/lucid and transports/database know Lucid and the database clients.',
      { path: product, pathNot: '^src/(stores/lucid|transports/database)[/.]' },
      { path: `(^|/)node_modules/${drivers}/` }
    ),
    forbid(
      'redis-only-in-its-driver',
      'Only transports/redis knows a Redis client.',
      { path: product, pathNot: '^src/transports/redis[/.]' },
      { path: `(^|/)node_modules/${redisClients}/` }
    ),
    forbid(
      'src-is-below-composition',
      'Nothing in src imports providers, services, commands, stubs or configure.ts.',
      { path: '^src/' },
      { path: '^(providers|services|commands|stubs)/|^configure\\.ts$' }
    ),
    forbid(
      'services-are-for-applications',
      'The package itself never goes through its own services.',
      { path: product, pathNot: '^services/' },
      { path: '^services/' }
    ),
    forbid(
      'no-import-of-an-index',
      'Import the file that declares the name, not one that gathers names for users.',
      {},
      { path: '(^|/)index\\.ts$|^src/(types|testing)/main\\.ts$', pathNot: 'node_modules/' }
    ),
    forbid(
      'product-imports-no-test-code',
      'What is published imports neither tests nor scripts.',
      { path: product },
      { path: '^(tests|bin|scripts|benchmarks|playground)/' }
    ),
    forbid(
      'product-imports-no-development-dependency',
      'What is published imports its dependencies and peers only.',
      { path: product },
      { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['npm-peer', 'npm'] }
    ),
    forbid(
      'playground-is-a-user',
      'The playground uses the package through its entry points.',
      { path: '^playground/' },
      { path: product }
    ),
    forbid(
      'names-say-what-is-inside',
      'A file is named after what it exports.',
      {},
      {
        path: '^(?!node_modules).*(^|/)(utils?|helpers?|common)(/|\\.ts$)',
        pathNot: 'node_modules/',
      }
    ),
    forbid('no-cycles', 'No cycles, those of types included.', {}, { circular: true }),
    forbid(
      'everything-resolves',
      'Imports resolve. Those by # name built files, as the import map of an application does: its compiler checks them.',
      {},
      { couldNotResolve: true, pathNot: '^#' }
    ),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: ['(^|/)node_modules/', '^build/'] },
    exclude: { path: ['^(playground/)?(coverage|tmp)/', '^playground/build/'] },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
    },
  },
}
