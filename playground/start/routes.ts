import Airport from '#models/airport'
import router from '@adonisjs/core/services/router'

router.get('/', () => Airport.query().orderBy('name').limit(100))
