import engine from '@adonis-agora/durable/services/main'
import logger from '@adonisjs/core/services/logger'

engine.on('run.blocked', ({ runId, workflow, error }) => {
  logger.error({ runId, workflow, err: error }, 'a run is blocked')
})

engine.onDead(({ id, workflow, error }) => {
  logger.error({ runId: id, workflow, err: error }, 'a run is dead')
})
