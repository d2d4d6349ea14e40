// The events of a worker: BullMQ's events with BullMQ's arguments.
import type { Any, IfPlain } from '../job/typing.js';
import type { Job } from '../handle/job.js';
import type { Emitter } from '../runtime/emitter.js';
import type { JobOf, ResultOf } from '../handle/typed-job.js';

export interface BlockReport {
  /** For how long the event loop was blocked. */
  ms: number;
  /** The jobs of this worker whose handlers ran during the block. */
  jobIds: string[];
  /** Where the event loop was: one line for each function, with its file and line. In parentheses, why that is not known. */
  stack: string;
}

export interface WorkerEvents<Data, Result, Name extends string>
  extends EventsOf<JobOf<Data, Result, Name>, ResultOf<Data, Result, Name>> {}

interface EventsOf<J, Value> {
  active: [job: J, prev: string];
  completed: [job: J, result: Value, prev: string];
  /**
   * Emitted also after an attempt that will be retried. `job` is undefined if it was removed on failing. The error of a job that stalled
   * too often has the code JOB_STALLED and, in `lostBy`, the process that lost it.
   */
  failed: [job: J | undefined, error: Error, prev: string];
  /** The worker was closed while the job ran, and the job went back to waiting. No attempt or stall counts. `reason`: a SHUTDOWN error. */
  interrupted: [job: J, reason: Error];
  progress: [job: J, progress: unknown];
  /** This worker found a job whose owner died. `lostBy`: the process of that owner, and how the loss was found. */
  stalled: [jobId: string, prev: string];
  drained: [];
  paused: [];
  resumed: [];
  closing: [message: string];
  closed: [];
  ready: [];
  /** Without a listener the error is printed, and the process does not end. */
  error: [error: Error];
  /** The store replies again, after an outage that was emitted as `error`. `outageMs`: its length. */
  recovered: [outageMs: number];
  /** For programs of BullMQ that listen to it. Never emitted: `error` and `recovered` say when a store cannot be reached, whichever it is. */
  'ioredis:close': [];
  /** The event loop was blocked for `blockedMs`. Emitted when the loop is free again. */
  loopBlocked: [blockedMs: number];
  /** The same, with what is known about it. Emitted once for each block. */
  blocked: [report: BlockReport];
  locksRenewed: [renewed: { count: number; jobIds: string[] }];
  /** These locks are lost for good. */
  lockRenewalFailed: [jobIds: string[]];
  /** A renewal failed and is retried soon; nothing is lost yet. The same error is emitted as `error`. */
  lockRenewalError: [error: Error];
}

export type WorkerListener<Data = Any, Result = Any, Name extends string = string> = {
  [E in keyof WorkerEvents<Data, Result, Name>]: (...args: WorkerEvents<Data, Result, Name>[E]) => void;
};

/** Listeners in BullMQ's types, for generic subclasses of Worker, which can name no others. A worker with a map of jobs accepts none. */
export type PlainListeners<Data, Result, Name extends string> = {
  [E in keyof EventsOf<Data, Result>]: IfPlain<Data, Result, (...args: EventsOf<Job<Data, Result, Name>, Result>[E]) => void>;
};

/** The worker as its own parts see it, whatever the types of its jobs. */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyWorkerEmitter = Emitter<WorkerEvents<any, any, string>>;
