import env from '#start/env'
import app from '@adonisjs/core/services/app'
import { defineConfig } from '@adonisjs/lucid'

const dbConfig = defineConfig({
  connection: env.get('DB_CONNECTION'),
  connections: {
    sqlite: {
      client: 'better-sqlite3',
      connection: { filename: app.makePath(env.get('DB_FILE')) },
      useNullAsDefault: true,
      migrations: { naturalSort: true, paths: ['database/migrations'] },
      schemaGeneration: { enabled: false },
      debug: app.inDev,
    },

    /** The driver itself reads where the server is from PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE. */
    postgres: {
      client: 'pg',
      connection: {},
      migrations: { naturalSort: true, paths: ['database/migrations'] },
      schemaGeneration: { enabled: false },
      debug: app.inDev,
    },
  },
})

export default dbConfig
