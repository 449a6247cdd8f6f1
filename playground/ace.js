/** Entry point of `node ace`: compiles TypeScript as it is imported. */
import '@poppinss/ts-exec'
await import('./bin/console.ts')
