// What a worker tells its listeners: BullMQ's events with BullMQ's arguments.
import type { LostBy } from '../job/lost-by.js';
import type { Any } from '../job/typing.js';
import type { Emitter } from '../runtime/emitter.js';
import type { JobOf, ResultOf } from '../handle/typed-job.js';

export interface WorkerEvents<Data, Result, Name extends string> {
  active: [job: JobOf<Data, Result, Name>, prev: string];
  completed: [job: JobOf<Data, Result, Name>, result: ResultOf<Data, Result, Name>, prev: string];
  /**
   * Also after an attempt that will be repeated. Without a job when it was removed on failing. The error of a job that stalled too often has
   * the code JOB_STALLED and, in `lostBy`, which process lost it.
   */
  failed: [job: JobOf<Data, Result, Name> | undefined, error: Error, prev: string];
  progress: [job: JobOf<Data, Result, Name>, progress: unknown];
  /** A job whose owner died was found by this worker. `lostBy`: which process that was, and how it was found. */
  stalled: [jobId: string, prev: string, lostBy?: LostBy];
  drained: [];
  paused: [];
  resumed: [];
  closing: [message: string];
  closed: [];
  ready: [];
  /** Never ends the process when nobody listens; it is printed then. */
  error: [error: Error];
  /** The store replies again, after an outage that was reported as `error` so many milliseconds ago. */
  recovered: [outageMs: number];
  /** The event loop was blocked for so many milliseconds; told when it is free again. */
  loopBlocked: [blockedMs: number];
  locksRenewed: [renewed: { count: number; jobIds: string[] }];
  /** These are lost for good. */
  lockRenewalFailed: [jobIds: string[]];
  /** An attempt to renew failed and is made again soon; nothing is lost yet. The same error is told as `error`. */
  lockRenewalError: [error: Error];
}

export type WorkerListener<Data = Any, Result = Any, Name extends string = string> = {
  [E in keyof WorkerEvents<Data, Result, Name>]: (...args: WorkerEvents<Data, Result, Name>[E]) => void;
};

/** The worker as its own stations see it, whatever its jobs are typed as. */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyWorkerEmitter = Emitter<WorkerEvents<any, any, string>>;
