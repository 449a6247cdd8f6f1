export { configure } from './configure.ts'
