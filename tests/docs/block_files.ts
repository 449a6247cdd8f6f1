/** What the blocks of the pages use and do not show: files of the application that they speak of, by path. */
export const servicesOfBlocks: Readonly<Record<string, string>> = {
  'app/services/mail_service.ts': `import { Step } from '@adonis-agora/durable'

interface Member {
  id: number
  email: string
}

export default class MailService {
  @Step()
  async sendWelcome(member: Member) {
    return member.email
  }

  @Step()
  async sendTips(input: { member: Member; answer: unknown }) {
    return input.member.email
  }
}
`,
  'app/workflows/pack_order.ts': `import { BaseWorkflow } from '@adonis-agora/durable'
import type { WorkflowCtx } from '@adonis-agora/durable/types'

export default class PackOrder extends BaseWorkflow {
  static override workflow = { name: 'orders.pack' }

  async run(ctx: WorkflowCtx, input: { order: number }) {
    return ctx.localStep('pack', () => ({ parcel: \`parcel-\${input.order}\` }))
  }
}
`,
  'block_globals.d.ts': `import type { WorkflowCtx } from '@adonis-agora/durable/types'

declare global {
  const ctx: WorkflowCtx
  const orders: { order: number }[]
  const chargeCard: (typeof import('#steps/charge_card'))['chargeCard']
  const sendInvoice: (typeof import('#steps/send_invoice'))['sendInvoice']
  const PackOrder: (typeof import('#workflows/pack_order'))['default']
  const WelcomeMember: (typeof import('#workflows/welcome_member'))['default']
  function bookRoom(order: number): Promise<{ number: number }>
  function sendReport(): Promise<void>
  function quoteOf(kind: 'fast' | 'cheap'): Promise<{ cents: number }>
}
`,
}
