import { configProvider } from '@adonisjs/core'
import type { NewWorker } from '../../src/contracts/store.ts'
import type { StoreProvider } from '../../src/define_config.ts'
import { MemoryStore } from '../../src/stores/memory/memory_store.ts'

/** A memory store that keeps what an application did with it, in order. */
export class RecordingStore extends MemoryStore {
  readonly calls: string[] = []

  override async open() {
    this.calls.push('open')
    return super.open()
  }

  override async registerWorker(worker: NewWorker) {
    this.calls.push('registerWorker')
    return super.registerWorker(worker)
  }

  override async listWorkers() {
    this.calls.push('listWorkers')
    return super.listWorkers()
  }

  override async removeWorker(instance: string) {
    this.calls.push('removeWorker')
    return super.removeWorker(instance)
  }

  override async close() {
    this.calls.push('close')
    return super.close()
  }

  provider(): StoreProvider {
    return configProvider.create(async () => {
      this.calls.push('make')
      return () => this
    })
  }
}
