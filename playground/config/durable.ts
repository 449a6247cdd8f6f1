import env from '#start/env'
import { defineConfig, stores } from '@adonis-agora/durable'
import app from '@adonisjs/core/services/app'

const durableConfig = defineConfig({
  store: env.get('DURABLE_STORE') === 'memory' ? stores.memory() : stores.lucid(),
  worker: { embedded: app.inDev },

  /** A run that is lost once more than this ends dead. */
  maxRecoveryAttempts: 3,
})

export default durableConfig
