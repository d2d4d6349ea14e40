// The event log of a queue.

/*
 * Which verb tells what, in this order within a call. `prev` is the state before.
 *   `delay` of delayed is when the job falls due, in the store's epoch ms.
 *   add         added{jobName}, then waiting or delayed{delay}; duplicated for an id that exists
 *   claim       waiting{prev: delayed} for jobs that fell due, active{prev: waiting}
 *   settle      completed{returnvalue, prev} · failed{failedReason, prev} then, unless `early`, retries-exhausted{attemptsMade} ·
 *               retry: waiting{prev: active, failedReason} or delayed{delay, failedReason} · delay: delayed{delay} · release: waiting{prev: active};
 *               then the claim's, then drained if jobs finished and none is waiting or active
 *   sweep       stalled{lostBy}, then waiting{prev: active} or failed{failedReason, prev: active, lostBy}; closeSessions, revoke: waiting{prev: active}
 *               (a charged close tells what a sweep tells)
 *   control     progress{data} · retry, promote: waiting{prev} · delay: delayed{delay} · removed{prev} · cleaned{count} if any went or `limit` is 0 · paused · resumed
 */
/** What happened, told to the outside. Ids count up per queue, so a listener that comes back reads on where it stopped. */
export interface StoredEvent {
  id: number;
  name: EventName;
  jobId?: string;
  /**
   * 1: `returnvalue` or `data` is not here. Above EVENT_VALUE_BYTES it is left out from the start, and the reader takes it from the job. The
   * result of a job that is removed on finishing comes with its event whatever its size, until the log has more than EVENTS_BYTES_KEPT:
   * then the oldest values go, and their events stay.
   */
  large?: number;
  /** prev, returnvalue (JSON text), failedReason, lostBy (JSON text), delay, data (JSON text of progress), jobName, count … */
  [field: string]: string | number | undefined;
}

export type EventName =
  | 'added'
  | 'waiting'
  | 'active'
  | 'progress'
  | 'completed'
  | 'failed'
  | 'retries-exhausted'
  | 'stalled'
  | 'delayed'
  | 'removed'
  | 'cleaned'
  | 'paused'
  | 'resumed'
  | 'drained'
  | 'duplicated';

export interface EventsReply {
  events: StoredEvent[];
  /** True when the reply was cut at REPLY_BYTES. */
  more?: boolean;
  /** Read on from here. */
  last: number;
  /** So many events after `after` were cut from the log before this reader came; absent if none. */
  missed?: number;
}

/** Events that a queue keeps unless trimmed to fewer; EVENTS_BYTES_KEPT bounds their bytes, and cuts values before events. */
export const EVENTS_KEPT = 10_000;
