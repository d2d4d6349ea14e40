// Cancels, time limits, and how a run ends.
import { inFile, stores, unit } from './tests.mjs';

const cancel = { tests: stores('cancel'), only: 'on memory' };
const runner = { tests: unit('worker-runner') };
const verdict = { tests: unit('job-verdict') };
const limit = { tests: unit('worker-time-limit') };

export const CANCEL = [
  ...inFile(
    'src/queue/cancelling.ts',
    cancel,
    ['the limit of cancelJobs bounds a chunk alone', 'Math.min(chunk, limit - cancelled)', 'chunk'],
    ['onProgress cannot stop a cancel', 'onProgress?.(cancelled) !== false', '(onProgress?.(cancelled), true)'],
    ['cancelJobs takes younger jobs too', '(olderThanMs !== undefined && { olderThanMs })', '{}'],
    [
      'cancelJobs takes all lists',
      'lists: listsOf(types), ',
      'lists: [...listsOf(undefined), ...(types === undefined ? [] : listsOf(types))], ',
    ],
  ),
  ...inFile(
    'src/handle/cancel.ts',
    { tests: stores('flows', 'cancel'), only: 'on memory' },
    ['grandchildren go on', 'left.push(child);', ''],
    ['an empty reason is a reason', "reason === undefined || reason === ''", 'reason === undefined'],
  ),
  ...inFile(
    'src/worker/runner.ts',
    runner,
    ['a cancelled job begins', 'if (lock.doomed !== undefined) throw', "if (lock.doomed === '') throw"],
    [
      'a cancelled job is tried again',
      'lock.doomed === undefined ? this.#rules : { ...this.#rules, final: true }',
      'this.#rules',
    ],
    ['the reason of a cancel is said twice', 'String(error.message).includes(why)', 'false'],
    ['an error does not carry its cancelReason', 'if (Object.isExtensible(error))', 'if (!Object.isExtensible(error))'],
    [
      'a job of a failed child begins',
      'if (deferredFailure !== undefined) throw',
      "if (deferredFailure === '') throw",
      { tests: stores('flows'), only: 'on memory' },
    ],
    [
      'a job starts once too often',
      'job.attemptsStarted > this.#maxStartedAttempts',
      'job.attemptsStarted > this.#maxStartedAttempts + 1',
    ],
    [
      'a shutdown uses up an attempt',
      "if (lock.withdrawn || isSignal(error, 'RateLimitError')",
      "if (isSignal(error, 'RateLimitError')",
    ],
    ['the error of lock.assert fails the job', ' || isOwnLoss(error, lock)) {', ' || (isOwnLoss(error, lock) && lock.held)) {'],
    [
      'the loss of another job’s lock puts this one back',
      'error.jobId === lock.jobId && !lock.held',
      "error.jobId !== '' && !lock.held",
    ],
  ),
  ...inFile(
    'src/worker/time-limit.ts',
    limit,
    ['a handler is not told that its time is over', 'this.#lock.cancel(error);', ''],
    ['a time limit has no grace', 'this.#options.graceMs);\n  }', '0);\n  }'],
    [
      'a time limit goes on after the run',
      'clearTimeout(this.#timer);\n    this.#options.onEnd();',
      'if (this.#timer === undefined) clearTimeout(this.#timer);\n    this.#options.onEnd();',
    ],
    ['the thread ends a run before its grace', 'timeoutMs + graceMs + THREAD_LATER_MS', 'timeoutMs + graceMs - THREAD_LATER_MS'],
  ),
  ...inFile(
    'src/job/verdict.ts',
    verdict,
    [
      'a blocked run is tried again for ever',
      'if (attemptsMade >= (job.opts.attempts ?? 0)) return failed',
      'if (attemptsMade < 0) return failed',
    ],
    ['a discarded job is tried again', 'job.discarded || ', ''],
    ['an early failure is not marked', '? { early: true } : {}', '? {} : {}'],
    ['all stack traces are kept', '.slice(-limit)', ''],
    ['a strategy cannot end the attempts', 'if (delayMs < 0) return failed(job, token, error, rules);', ''],
    [
      'a result that cannot be stored is tried again',
      'return failed(job, token, toError(thrown), rules);',
      'return { kind: "retry", jobId: job.id, token, reason: "", stacktrace: "[]", delayMs: 0, lifo: false };',
    ],
    ['a retry forgets lifo', 'const lifo = job.opts.lifo ?? false;\n    return {', 'const lifo = false;\n    return {'],
    [
      'a refused result completes its job',
      "if (outcome.kind === 'completed') {",
      "if (outcome.kind === 'completed' && outcome.value === '') {",
    ],
  ),
];
