// Schedules: what makes the next job of a series, and which job that is. The caller computes the slots; the store keeps the rule below.
import type { NewJob } from '../../job/record.js';
import type { ScheduleRecord } from '../../job/schedule-record.js';

export type { ScheduleRecord } from '../../job/schedule-record.js';

/*
 * The rule. For every running schedule, exactly one of two conditions holds at each moment: it has one next job, or it is owing.
 * - A claim that takes the next job makes the schedule owing in the same step, and returns the schedule as `debt` of the job. The job is
 *   then an ordinary job: it may stall, be retried or fail, and the schedule does not change. A repeated claim may leave `debt` out.
 * - The job of a `serial` schedule stays its next job while it runs, waits or is delayed again. Its end (completed, or failed for good)
 *   makes the schedule owing in the same step. So no job is made while the last one lives.
 * - `advance` clears the debt: it adds the next job. A worker does that which claimed the job or which read `undone` (`claim`, `probe`).
 * - `change` promotes a next job, delays it and changes its priority as that of any job. It does not remove it: by id the status is
 *   `scheduled`, a selection passes over it. `forget` with `all` deletes schedules, with next jobs that have not started.
 * - A store that went back in time (a replica that took over) may have lost a next job or its end. So a sweep also makes a schedule owing
 *   that is running, whose slot passed more than a minute ago, and whose next job is gone, finished or (unless serial) active.
 */
export interface Scheduling {
  /**
   * Changes schedules, in order. A change applies to the version that the caller has read. `stale`: the version is another one now, and
   * nothing was changed; the reply has the record as it is. So a repetition after a lost reply is `stale` or `missing`, and changes
   * nothing. `missing`: there is no such schedule. `taken`: the slot's job has the id of a job that cannot be replaced; nothing was
   * changed, except that the event `duplicated` is recorded.
   * Events: those of `add` for each next job; removed{prev} for each job that is removed.
   */
  schedule(queue: string, changes: ScheduleChange[]): Promise<ScheduleReply[]>;
}

export type ScheduleChange = { id: string; version: number } /**
 * Makes a schedule (version 0: it must not exist) or replaces it. A next job that has not started is removed, and the given one is
 * added. Without a slot the schedule has ended. If the schedule was and stays serial and its job has started, that job stays the next
 * job, and the slot is not used.
 */ & (
  | { kind: 'put'; spec: string; serial: boolean; next: Slot | undefined }
  /** Adds the next job of an owing schedule; `stale` for any other. Without a slot the schedule has ended. */
  | { kind: 'advance'; next: Slot | undefined }
  /** Removes a next job that has not started; it does not count. The started job of a serial schedule stays its next job. */
  | { kind: 'pause' }
  /** Deletes the schedule. A next job that has not started and is delayed is removed; in any other state it stays as an ordinary job. */
  | { kind: 'remove' }
);

export interface Slot {
  /** The moment that the slot stands for, in epoch ms. The store keeps it and compares it with nothing but the time of a sweep. */
  at: number;
  /** How long the job is delayed from now, in place of its `delayMs`. 0 or less: it waits at once. */
  dueInMs: number;
  /** 1 for the first job of the schedule. */
  count: number;
  job: SlotJob;
}

/** The job of a slot: its id is given, and it has no deduplication, so no other add can replace it. */
export type SlotJob = Omit<NewJob, 'id' | 'deduplication'> & { id: string };

export interface ScheduleReply {
  status: 'done' | 'stale' | 'missing' | 'taken';
  /** The schedule after the call; absent if it is missing or was removed. */
  record?: ScheduleRecord;
}

/**
 * Schedules by their ids (those that exist), that are owing, or all by position: by `at`, then by id; `end` is inclusive, -1 = last. Or only
 * their number. A query by ids or for owing schedules costs the same, however many other schedules there are.
 */
export type ScheduleQuery =
  | { ids: string[] }
  | { owing: true; limit: number }
  | { start: number; end: number; asc: boolean }
  | { count: true };

export interface SchedulesFound {
  records: ScheduleRecord[];
  /** The number of all schedules of the queue. Present if the query asks for it. */
  count?: number;
  /** The wall clock of the store, in epoch ms: slots are moments of the calendar. */
  now: number;
}
