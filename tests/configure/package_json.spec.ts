import { test } from '@japa/runner'
import { withWorkflowFolders } from '../../src/configure/package_json.ts'

const kit = `{
    "name": "shop",
    "imports": {
        "#controllers/*": "./app/controllers/*.ts",
        "#start/*": "./start/*.ts"
    },
    "scripts": { "say": "echo \\"imports\\": {" },
    "hotHook": {
        "boundaries": ["./app/controllers/**/*.ts", "./app/middleware/*.ts"]
    }
}
`

test.group('package.json of an application', () => {
  test('gets both folders as imports and as boundaries, and keeps its layout', ({ assert }) => {
    assert.equal(
      withWorkflowFolders(kit),
      `{
    "name": "shop",
    "imports": {
        "#controllers/*": "./app/controllers/*.ts",
        "#start/*": "./start/*.ts",
        "#workflows/*": "./app/workflows/*.ts",
        "#steps/*": "./app/steps/*.ts"
    },
    "scripts": { "say": "echo \\"imports\\": {" },
    "hotHook": {
        "boundaries": ["./app/controllers/**/*.ts", "./app/middleware/*.ts", "./app/workflows/**/*.ts", "./app/steps/**/*.ts"]
    }
}
`
    )
  })

  test('stays as it is the second time', ({ assert }) => {
    const once = withWorkflowFolders(kit)
    assert.equal(withWorkflowFolders(once), once)
  })

  test('without imports gets them, and without hot reload no boundaries', ({ assert }) => {
    assert.equal(
      withWorkflowFolders('{\n  "name": "shop",\n  "type": "module"\n}\n'),
      `{
  "name": "shop",
  "type": "module",
  "imports": {
    "#workflows/*": "./app/workflows/*.js",
    "#steps/*": "./app/steps/*.js"
  }
}
`
    )
  })

  test('keeps an import that the application has already', ({ assert }) => {
    const text = '{\n  "imports": {\n    "#steps/*": "./src/steps/*.js"\n  }\n}\n'
    const { imports } = JSON.parse(withWorkflowFolders(text))
    assert.deepEqual(imports, {
      '#steps/*': './src/steps/*.js',
      '#workflows/*': './app/workflows/*.js',
    })
  })

  test('a list over several lines grows by lines; an empty one begins them', ({ assert }) => {
    const list = (items: string) => `{\n  "hotHook": {\n    "boundaries": [${items}]\n  }\n}\n`
    const grown = withWorkflowFolders(list('\n      "./app/controllers/**/*.ts"\n    '))
    assert.include(
      grown,
      `"boundaries": [
      "./app/controllers/**/*.ts",
      "./app/workflows/**/*.ts",
      "./app/steps/**/*.ts"
    ]`
    )
    assert.include(
      withWorkflowFolders(list('')),
      `"boundaries": [
      "./app/workflows/**/*.ts",
      "./app/steps/**/*.ts"
    ]`
    )
  })
})
