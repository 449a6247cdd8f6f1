import type { ApplicationService } from '@adonisjs/core/types'

/** Binds the package to an application. */
export default class DurableProvider {
  constructor(protected app: ApplicationService) {}
}
