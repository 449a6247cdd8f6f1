import { BaseSchema } from '@adonisjs/lucid/schema'

export default class extends BaseSchema {
  override async up() {
    this.schema.createTable('rejected_lines', (table) => {
      table.increments('id')
      table.string('run_id').notNullable().unique()
      table.text('line').notNullable()
      table.text('fields').notNullable()
      table.text('issues').notNullable()
      table.integer('writes').notNullable()
    })
  }

  override async down() {
    this.schema.dropTable('rejected_lines')
  }
}
