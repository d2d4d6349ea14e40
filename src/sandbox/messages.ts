// What a worker and the threads or processes of its sandbox say to each other. A job that calls nothing takes one message each way. Values
// go as JSON text, so that both kinds of child carry the same values.
import type { Job } from '../handle/job.js';
import type { JobJson } from '../handle/json.js';
import type { ParentKeys } from '../handle/children.js';
import type { CrossingError } from './crossing-error.js';

/** The methods of a job that a handler may call inside a sandbox. The worker makes the call, with the token of the job. */
export const CALLS = [
  'updateData',
  'updateProgress',
  'log',
  'clearLogs',
  'getState',
  'isCompleted',
  'isFailed',
  'isDelayed',
  'isWaiting',
  'isActive',
  'isWaitingChildren',
  'getChildrenValues',
  'getIgnoredChildrenFailures',
  'getFailedChildrenValues',
  'getDependencies',
  'getDependenciesCount',
  'removeChildDependency',
  'removeUnprocessedChildren',
  'removeDeduplicationKey',
  'changePriority',
  'moveToDelayed',
  'moveToWait',
  'moveToWaitingChildren',
  'extendLock',
  'discard',
  'sleep',
  'waitFor',
  'steps',
  'cancel',
] as const satisfies readonly (keyof Job)[];

/** The two halves of `job.step`: its function runs between them, inside the sandbox. */
export const STEP_CALLS = ['beginStep', 'recordStep'] as const;

export type Call = (typeof CALLS)[number];
export type StepCall = (typeof STEP_CALLS)[number];

/** A job on its way into a sandbox. `fence` and `token` are those of its lock. */
export interface SentJob extends JobJson {
  token: string;
  fence: number;
  queueName: string;
  prefix: string;
  parent?: ParentKeys;
  parentKey?: string;
}

/** The memory of the session that a thread reads, and the words of the lock's own end. `memory` is left out if the thread has them. */
export interface SharedLock {
  slot: number;
  timed: boolean;
  memory?: { words: SharedArrayBuffer; block: SharedArrayBuffer };
}

export type ToChild =
  | { kind: 'load'; file: string; ownEnd?: SharedArrayBuffer; maxHeapBytes?: number }
  /** `until`: the moment to which a process may trust the lock. */
  | { kind: 'run'; run: number; job: SentJob; lock?: SharedLock; until?: number }
  /** The signals that a process ignores from now on, because the process of the worker handles them. */
  | { kind: 'signals'; ignore: readonly string[] }
  | { kind: 'trust'; run: number; until: number }
  | { kind: 'abort'; run: number; reason: CrossingError; lost: boolean }
  | { kind: 'reply'; call: number; value?: string; error?: CrossingError };

export type FromChild =
  | { kind: 'loaded' }
  | { kind: 'unloadable'; error: CrossingError }
  /** `args`: JSON texts; null stands for undefined. */
  | { kind: 'call'; run: number; call: number; method: Call | StepCall; args: (string | null)[] }
  /** `full`: the heap is nearly as large as it may be. */
  | { kind: 'done'; run: number; value: string; full?: true }
  | { kind: 'failed'; run: number; error: CrossingError; full?: true }
  /** An error that no code caught. `run`: the run that it comes from, which may be over. */
  | { kind: 'uncaught'; run: number | undefined; jobId: string | undefined; error: CrossingError };

/** The first argument of a child, so that its entry file does nothing where something else loads it. */
export const CHILD_MARK = 'holdfast-sandbox';
