import { createDurableTables, dropDurableTables } from '@adonis-agora/durable'
import { BaseSchema } from '@adonisjs/lucid/schema'

export default class extends BaseSchema {
  override async up() {
    createDurableTables(this.schema, { version: 1 })
  }

  override async down() {
    dropDurableTables(this.schema, { version: 1 })
  }
}
