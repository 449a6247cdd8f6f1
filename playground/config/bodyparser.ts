import { defineConfig } from '@adonisjs/core/bodyparser'

const bodyParserConfig = defineConfig({
  allowedMethods: ['POST', 'PUT', 'PATCH', 'DELETE'],
  json: { convertEmptyStringsToNull: true, types: ['application/json'] },
})

export default bodyParserConfig
