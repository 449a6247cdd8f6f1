import { Env } from '@adonisjs/core/env'

export default await Env.create(new URL('../', import.meta.url), {
  NODE_ENV: Env.schema.enum(['development', 'production', 'test'] as const),
  PORT: Env.schema.number(),
  HOST: Env.schema.string({ format: 'host' }),
  LOG_LEVEL: Env.schema.string(),
  APP_KEY: Env.schema.secret(),
  APP_URL: Env.schema.string({ format: 'url', tld: false }),

  DB_CONNECTION: Env.schema.enum(['sqlite', 'postgres'] as const),

  /** The SQLite file, from the root of the application or absolute. */
  DB_FILE: Env.schema.string(),

  /*
  |----------------------------------------------------------
  | Variables for configuring @adonis-agora/durable
  |----------------------------------------------------------
  */
  DURABLE_STORE: Env.schema.enum.optional(['lucid', 'memory'] as const),
})
