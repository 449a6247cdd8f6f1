/*
 * Preloaded (`--import`) into a process that is to run without the rule that the environment names: the source of
 * one file is changed as it is loaded, and nothing on disk.
 */
import { readFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { RULES, withoutRule } from './rules.ts'

const name = process.env.DURABLE_WITHOUT_RULE
const rule = RULES.find((other) => other.name === name)
if (!rule) throw new Error(`There is no rule "${name}"`)
const file = new URL(`../../${rule.file}`, import.meta.url)
const source = stripTypeScriptTypes(withoutRule(rule, readFileSync(file, 'utf8')), {
  mode: 'transform',
})

registerHooks({
  load: (url, context, next) =>
    url === file.href ? { format: 'module', source, shortCircuit: true } : next(url, context),
})
