import { configPkg, INCLUDE_LIST } from '@adonisjs/eslint-config'
import tseslint from 'typescript-eslint'

const asAny = ['TSAsExpression', 'TSTypeAssertion'].map((node) => ({
  selector: `${node} > TSAnyKeyword`,
  message: 'An assertion to any switches the types off: narrow the value, or declare its type.',
}))

const impureGlobals = [
  'Temporal',
  'performance',
  'process',
  'console',
  'crypto',
  'fetch',
  'globalThis',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'clearTimeout',
  'clearInterval',
  'clearImmediate',
].map((name) => ({
  name,
  message: 'Time, ids and randomness are arguments here: core and replay are pure.',
}))

const timers = [
  'setTimeout',
  'setInterval',
  'setImmediate',
  'clearTimeout',
  'clearInterval',
  'clearImmediate',
].map((name) => ({
  name,
  message: 'Import it from node:timers: fake timers of an application replace the global one.',
}))

/** A Date made of an instant that was given is a value; these read the clock. */
const clockReadings = [
  'NewExpression[callee.name="Date"][arguments.length=0]',
  'CallExpression[callee.name="Date"]',
  'MemberExpression[object.name="Date"][property.name="now"]',
].map((selector) => ({
  selector,
  message: 'Time is an argument here: core and replay are pure.',
}))

export default configPkg(
  { ignores: ['tmp/**', 'playground/build/**', 'playground/tmp/**'] },
  {
    name: 'Prettier is a check of its own',
    rules: { 'prettier/prettier': 'off' },
  },
  {
    name: 'No comment switches a rule off',
    linterOptions: { noInlineConfig: true, reportUnusedDisableDirectives: 'error' },
  },
  {
    name: 'Checks that need types',
    files: INCLUDE_LIST,
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    plugins: { '@typescript-eslint': tseslint.plugin },
    rules: {
      '@typescript-eslint/ban-ts-comment': [
        'error',
        { 'ts-ignore': true, 'ts-nocheck': true, 'ts-expect-error': 'allow-with-description' },
      ],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        {
          allowDefaultCaseForExhaustiveSwitch: false,
          considerDefaultExhaustiveForUnions: false,
          requireDefaultForNonUnion: false,
        },
      ],
      'no-restricted-syntax': ['error', ...asAny],
    },
  },
  {
    name: 'Timers that a test of an application cannot stop',
    files: ['src/engine/**/*.ts', 'src/worker/**/*.ts', 'src/stores/**/*.ts'],
    rules: { 'no-restricted-globals': ['error', ...timers] },
  },
  {
    name: 'Purity of core and replay',
    files: ['src/core/**/*.ts', 'src/replay/**/*.ts'],
    rules: {
      'no-restricted-globals': ['error', ...impureGlobals],
      'no-restricted-syntax': ['error', ...asAny, ...clockReadings],
      'no-restricted-properties': [
        'error',
        { object: 'Math', property: 'random', message: 'Randomness is an argument here.' },
      ],
      'no-restricted-imports': [
        'error',
        { patterns: [{ regex: '^node:', message: 'core and replay do no input or output.' }] },
      ],
    },
  }
)
