import { BaseSchema } from '@adonisjs/lucid/schema'

export default class extends BaseSchema {
  override async up() {
    this.schema.createTable('tickets', (table) => {
      table.increments('id')
      table.string('run_id').notNullable().unique()
      table.string('retry_run_id').notNullable()
      table.string('title').notNullable()
      table.text('reason').notNullable()
      table.text('payload').notNullable()
    })
  }

  override async down() {
    this.schema.dropTable('tickets')
  }
}
