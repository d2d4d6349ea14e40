// The event log of a queue.

/*
 * The events that each verb records, in this order within a call. `prev` is the state before.
 *   `delay` of delayed is when the job falls due, in the store's epoch ms.
 *   add         added{jobName}, then waiting or delayed{delay}; duplicated for an id that exists;
 *               deduplicated{deduplicationId, deduplicatedJobId: the id that the job would have had}, its jobId is that of the owner.
 *               An add that replaces the owner records removed{prev: delayed} and deduplicated{deduplicationId, deduplicatedJobId: the
 *               removed job}, whose jobId is that of the new job, and then the events of the new job
 *               A job with `waitsForChildren`: waiting-children in place of waiting or delayed
 *   claim       waiting{prev: delayed} for jobs that fell due, active{prev: waiting}
 *   settle      completed{returnvalue, prev} · failed{failedReason, prev} then, unless `early`, retries-exhausted{attemptsMade} ·
 *               retry: waiting{prev: active, failedReason} or delayed{delay, failedReason} · delay: delayed{delay} · release: waiting{prev: active};
 *               after the end of an owner those of its draft, as in add; then the claim's, then drained if jobs finished and none is waiting or active
 *               children: waiting-children{prev: active}. A parent that is released: waiting{prev: waiting-children} or delayed{delay}
 *   sweep       stalled{lostBy}, then waiting{prev: active} or failed{failedReason, prev: active, lostBy}; closeSessions: waiting{prev: active}
 *               (closeSessions of a crashed owner records what a sweep records)
 *   change      retry, promote, revoke: waiting{prev} · delay: delayed{delay} · remove: removed{prev} by id; by selection cleaned{count}, once per
 *               step that removed jobs, and once with 0 if no job matched
 *               send: removed{prev}, then those of add in the other queue
 *   schedule    removed{prev} for a next job that is removed, then those of add for the new one; duplicated for a slot that is taken
 *   control     progress{data} · paused · resumed · events of users: {args}
 */
/** An event of a queue. Ids grow per queue, so that a listener which comes back reads on where it stopped. */
export interface StoredEvent {
  id: number;
  /** An EventName, or the name of a user's own event. */
  name: string;
  jobId?: string;
  /**
   * 1 if `returnvalue` or `data` is missing here. A value above EVENT_VALUE_BYTES is left out, and the reader takes it from the job. The
   * result of a job that is removed on finishing stays in its event until the log exceeds EVENTS_BYTES_KEPT. Then the oldest values are
   * dropped, and their events stay.
   */
  large?: number;
  /** prev, returnvalue (JSON text), failedReason, lostBy (JSON text), delay, data (JSON text of progress), jobName, count, args … */
  [field: string]: string | number | undefined;
}

/** The events that stores record themselves. */
export const EVENT_NAMES = [
  'added',
  'waiting',
  'active',
  'progress',
  'completed',
  'failed',
  'retries-exhausted',
  'stalled',
  'delayed',
  'removed',
  'cleaned',
  'paused',
  'resumed',
  'drained',
  'duplicated',
  'deduplicated',
  'waiting-children',
] as const;

export type EventName = (typeof EVENT_NAMES)[number];

export interface EventsReply {
  events: StoredEvent[];
  /** True when the reply was cut at REPLY_BYTES. */
  more?: boolean;
  /** Read on from here. */
  last: number;
  /** The number of events after `after` that were cut from the log before this call; absent if none. */
  missed?: number;
}

/** Events that a queue keeps unless trimmed to fewer; EVENTS_BYTES_KEPT bounds their bytes, and cuts values before events. */
export const EVENTS_KEPT = 10_000;
