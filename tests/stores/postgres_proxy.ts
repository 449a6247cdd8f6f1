import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { PostgresServer } from './postgres_server.ts'

const COMMAND_COMPLETE = 0x43
const NOTIFICATION = 0x41
const KEY_DATA = 0x4b
const PARSE = 0x50

/**
 * Lies between the store and the server, and loses what a test wants lost. As a pooler it gives sessions numbers of its
 * own and keeps notifications to itself, which is how a transaction pooler looks to its clients.
 */
export class PostgresProxy {
  readonly names = new Set<string>()
  /** Statements that the server has completed, of all connections. */
  completed = 0
  #server: Server
  #target: PostgresServer
  #isPooler: boolean
  #sockets = new Set<Socket>()
  #isDown = false
  #isStalled = false
  #cut: { command: string; reached: PromiseWithResolvers<void> } | null = null

  private constructor(target: PostgresServer, isPooler: boolean) {
    this.#target = target
    this.#isPooler = isPooler
    this.#server = createServer((socket) => this.#accept(socket))
  }

  static async start(
    target: PostgresServer,
    { isPooler = false }: { isPooler?: boolean } = {}
  ): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(target, isPooler)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  /** Where the store is to connect. */
  get address(): PostgresServer {
    const { port } = this.#server.address() as AddressInfo
    return { ...this.#target, host: '127.0.0.1', port }
  }

  /**
   * Cuts a connection at its next answer to a command that begins like this, and loses it: the server has done what it
   * was asked to. Resolves when that has happened.
   */
  loseAnswer(command = ''): Promise<void> {
    const reached = Promise.withResolvers<void>()
    this.#cut = { command, reached }
    return reached.promise
  }

  /** Cuts all connections and refuses new ones. */
  down(): void {
    this.#isDown = true
    for (const socket of this.#sockets) socket.destroy()
  }

  up(): void {
    this.#isDown = false
    this.#isStalled = false
  }

  /** Lets nothing through any more, without a word. */
  stall(): void {
    this.#isStalled = true
  }

  async stop(): Promise<void> {
    this.down()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(client: Socket): void {
    if (this.#isDown) {
      client.destroy()
      return
    }
    const server = connect(this.#target.port, this.#target.host)
    const close = () => {
      for (const socket of [client, server]) {
        socket.destroy()
        this.#sockets.delete(socket)
      }
    }
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.on('error', close)
      socket.on('close', close)
    }
    const toServer = new Messages(true)
    client.on('data', (chunk: Buffer) => {
      if (this.#isStalled) return
      for (const message of toServer.take(chunk)) this.#read(message)
      server.write(chunk)
    })
    const toClient = new Messages(false)
    server.on('data', (chunk: Buffer) => {
      if (this.#isStalled) return
      const messages = toClient.take(chunk)
      this.completed += messages.filter(([type]) => type === COMMAND_COMPLETE).length
      if (this.#isCutAt(messages)) return close()
      if (!this.#isPooler) return void client.write(chunk)
      for (const message of messages) this.#pass(client, message)
    })
  }

  #read(message: Buffer): void {
    if (message[0] !== PARSE) return
    const name = message.subarray(5, message.indexOf(0, 5)).toString()
    if (name !== '') this.names.add(name)
  }

  #pass(client: Socket, message: Buffer): void {
    if (message[0] === NOTIFICATION) return
    if (message[0] === KEY_DATA) message.writeInt32BE(1_000_000 + message.readInt32BE(5), 5)
    client.write(message)
  }

  #isCutAt(messages: readonly Buffer[]): boolean {
    const { command = '', reached } = this.#cut ?? {}
    const isAnswer = (message: Buffer) =>
      message[0] === COMMAND_COMPLETE && message.subarray(5).toString().startsWith(command)
    if (!reached || !messages.some(isAnswer)) return false
    this.#cut = null
    reached.resolve()
    return true
  }
}

/** Cuts a stream into the messages of the protocol; the first of a client has no type. */
class Messages {
  #buffer = Buffer.alloc(0)
  #hasUntyped: boolean

  constructor(startsUntyped: boolean) {
    this.#hasUntyped = startsUntyped
  }

  take(chunk: Buffer): Buffer[] {
    this.#buffer = Buffer.concat([this.#buffer, chunk])
    const messages: Buffer[] = []
    for (;;) {
      const at = this.#hasUntyped ? 0 : 1
      if (this.#buffer.length < at + 4) return messages
      const length = at + this.#buffer.readInt32BE(at)
      if (this.#buffer.length < length) return messages
      messages.push(this.#buffer.subarray(0, length))
      this.#buffer = this.#buffer.subarray(length)
      this.#hasUntyped = false
    }
  }
}
