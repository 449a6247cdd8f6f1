import { test } from '@japa/runner'
import MakeStep from '../../commands/make_step.ts'
import MakeWorkflow from '../../commands/make_workflow.ts'
import { kernelOf } from '../configure/configured_app.ts'

test.group('make:workflow', () => {
  test('makes a class in app/workflows: file, class and workflow have the name that was given', async ({
    assert,
    fs,
  }) => {
    await fs.createJson('tsconfig.json', {})
    const ace = await kernelOf(fs)
    const command = await ace.create(MakeWorkflow, ['billing/monthlyInvoice'])
    await command.exec()
    command.assertSucceeded()
    const contents = await fs.contents('app/workflows/billing/monthly_invoice.ts')
    assert.include(contents, 'export default class MonthlyInvoice extends BaseWorkflow')
    assert.include(contents, `static override workflow = { name: 'monthly_invoice', version: '1' }`)
  })

  test('leaves an existing file alone without --force', async ({ assert, fs }) => {
    await fs.createJson('tsconfig.json', {})
    await fs.create('app/workflows/order_workflow.ts', 'mine')
    const ace = await kernelOf(fs)
    const plain = await ace.create(MakeWorkflow, ['OrderWorkflow'])
    await plain.exec()
    assert.equal(await fs.contents('app/workflows/order_workflow.ts'), 'mine')
    const forced = await ace.create(MakeWorkflow, ['OrderWorkflow', '--force'])
    await forced.exec()
    assert.include(await fs.contents('app/workflows/order_workflow.ts'), 'class OrderWorkflow')
  })
})

test.group('make:step', () => {
  test('makes a class with a step in app/steps', async ({ assert, fs }) => {
    await fs.createJson('tsconfig.json', {})
    const ace = await kernelOf(fs)
    const command = await ace.create(MakeStep, ['mail'])
    await command.exec()
    command.assertSucceeded()
    const contents = await fs.contents('app/steps/mail_steps.ts')
    assert.include(contents, 'export default class MailSteps')
    assert.include(contents, '@Step()')
  })
})
