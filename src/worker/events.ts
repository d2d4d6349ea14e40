// What a worker tells its listeners: BullMQ's events with BullMQ's arguments.
import type { LostBy } from '../job/lost-by.js';
import type { Any, IfPlain } from '../job/typing.js';
import type { Job } from '../handle/job.js';
import type { Emitter } from '../runtime/emitter.js';
import type { JobOf, ResultOf } from '../handle/typed-job.js';

export interface WorkerEvents<Data, Result, Name extends string>
  extends EventsOf<JobOf<Data, Result, Name>, ResultOf<Data, Result, Name>> {}

interface EventsOf<J, Value> {
  active: [job: J, prev: string];
  completed: [job: J, result: Value, prev: string];
  /**
   * Also after an attempt that will be repeated. Without a job when it was removed on failing. The error of a job that stalled too often has
   * the code JOB_STALLED and, in `lostBy`, which process lost it.
   */
  failed: [job: J | undefined, error: Error, prev: string];
  progress: [job: J, progress: unknown];
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

/** Listeners in BullMQ's types: a generic subclass of Worker can name no others, and a worker with a map of jobs accepts none of them. */
export type PlainListeners<Data, Result, Name extends string> = {
  [E in keyof EventsOf<Data, Result>]: IfPlain<Data, Result, (...args: EventsOf<Job<Data, Result, Name>, Result>[E]) => void>;
};

/** The worker as its own stations see it, whatever its jobs are typed as. */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyWorkerEmitter = Emitter<WorkerEvents<any, any, string>>;
