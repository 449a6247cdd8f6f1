import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Calls a function in the asynchronous context in which this module was loaded: that of no request, body or step. What
 * one caller sets off and others share, such as a flush, a claim and the runs it brings, would else go on in the
 * context of that caller.
 */
export const inCleanContext = AsyncLocalStorage.snapshot()
