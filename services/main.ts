import app from '@adonisjs/core/services/app'
import { WorkflowEngine } from '../src/engine/engine.ts'

let engine: WorkflowEngine

/** The engine of the application. Importing it opens nothing. */
await app.booted(async () => {
  engine = await app.container.make(WorkflowEngine)
})

export { engine as default }
