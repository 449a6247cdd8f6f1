import { BaseSchema } from '@adonisjs/lucid/schema'

export default class extends BaseSchema {
  override async up() {
    this.schema.createTable('airports', (table) => {
      table.increments('id')
      table.integer('source_id').notNullable().unique()
      table.string('iata', 3).notNullable().unique()
      table.string('icao', 4).notNullable()
      table.string('name').notNullable()
      table.string('city').notNullable()
      table.string('country').notNullable()
      table.string('country_code', 2).nullable()
      table.string('region').notNullable().index()
      table.double('latitude').notNullable()
      table.double('longitude').notNullable()
      table.integer('elevation_metres').notNullable()
      table.string('time_zone').notNullable()
      table.integer('utc_offset_minutes').notNullable()
      table.integer('writes').notNullable()
    })
  }

  override async down() {
    this.schema.dropTable('airports')
  }
}
