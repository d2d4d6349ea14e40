// The codec of jobs: the columns that the store writes for a new job, the rows that the statements of sql/ return, and the records that
// the store builds from them.
import { tokenOf } from '../../job/lock.js';
import type { ClaimedJob, JobRecord, NewJob } from '../../job/record.js';
import type { Origin } from '../../job/origin.js';
import type { StoredState } from '../../job/state.js';
import { extrasOf, MARK, marksOf, readExtras } from '../marks.js';
import type { Value } from './driver/load.js';

/** `job-columns` in sql/jobs.sql */
export type JobRow = [
  job: number,
  id: string,
  name: string,
  data: string,
  opts: string,
  state: number,
  priority: number,
  delay: number,
  timestamp: number,
  attemptsMade: number,
  attemptsStarted: number,
  stalledCounter: number,
  processedOn: number | null,
  finishedOn: number | null,
  processedBy: string | null,
  returnvalue: string | null,
  failedReason: string | null,
  stacktrace: string | null,
  progress: string | null,
  lostBy: string | null,
  extras: string | null,
];

/** `waiting-columns` in sql/claim.sql */
export type WaitingRow = [
  job: number,
  id: string,
  name: string,
  data: string | null,
  opts: string,
  priority: number,
  timestamp: number,
  worn: number,
  extras: string | null,
];

/** `member-columns` in sql/groups.sql: a waiting job of a group. */
export type MemberRow = [...WaitingRow, ord: number];

/** `left-columns` in sql/jobs.sql: a job that leaves a state. */
export type LeftRow = [
  job: number,
  id: string,
  priority: number,
  logNext: number,
  key: string | null,
  marks: number,
  extras: string | null,
];

/** `held-columns` in sql/jobs.sql: an active job whose lock ends without an outcome from its owner. */
export type HeldRow = [...LeftRow, stalledCounter: number];

/** `find-job` in sql/jobs.sql */
export type FoundRow = [
  ...HeldRow,
  state: number,
  dueAt: number | null,
  session: string | null,
  fence: number | null,
  logFirst: number,
  attemptsStarted: number,
];

/** The positions of columns in these rows. */
export const AT = {
  job: 0,
  id: 1,
  logNext: 3,
  key: 4,
  marks: 5,
  extras: 6,
  stalledCounter: 7,
  state: 8,
  dueAt: 9,
  session: 10,
  fence: 11,
  logFirst: 12,
  attemptsStarted: 13,
} as const;

/** Returns the fields of the record that stand in the extras of a row. */
export function fieldsOf({ [AT.extras]: extras }: readonly [...LeftRow, ...unknown[]]): Partial<JobRecord> {
  return extras === null ? {} : readExtras(extras);
}

/** Returns the group of a job. */
export function groupOf({ [AT.marks]: marks, [AT.extras]: extras }: readonly [...LeftRow, ...unknown[]]): string | undefined {
  return (marks & MARK.key) === 0 || extras === null ? undefined : readExtras(extras).group;
}

/** Returns the key of a new job; undefined if it has none, or belongs to a group. */
export function keyOf({ lockKey, group }: NewJob): string | undefined {
  return group === undefined ? lockKey : undefined;
}

/** The parameters of `insert-plain-job` in sql/add.sql that `columnsOf` fills. */
export const NEW_COLUMNS = 'priority delay timestamp name opts data key';
/** The further parameters of `insert-marked-job` in sql/add.sql that `markedColumnsOf` fills. */
export const MARKED_COLUMNS = 'marks extras group';

/** Returns the values of NEW_COLUMNS. */
export function columnsOf({ priority, delayMs, timestamp, name, opts, data, lockKey }: NewJob): Value[] {
  return [priority, delayMs, timestamp, name, opts, data, lockKey ?? null];
}

/** Returns the values of MARKED_COLUMNS; undefined for a job that has neither marks nor extras. */
export function markedColumnsOf(job: NewJob): Value[] | undefined {
  const [marks, extras] = [marksOf(job), extrasOf(job)];
  return marks === 0 && extras === null ? undefined : [marks, extras, job.group ?? null];
}

/** Returns the key of a stored job under the name that the origin of a letter has for it. */
export function keyFieldOf({ [AT.key]: key }: readonly [...LeftRow, ...unknown[]]): Pick<Origin, 'lockKey'> {
  return key === null ? {} : { lockKey: key };
}

/** States by their numbers in STATE. */
const STATES: readonly StoredState[] = ['waiting', 'waiting', 'delayed', 'active', 'completed', 'failed', 'waiting-children'];

export function stateOf(code: number): StoredState {
  return STATES[code] as StoredState;
}

export function toRecord(row: JobRow): JobRecord {
  const record: JobRecord = {
    id: row[1],
    name: row[2],
    data: row[3],
    opts: row[4],
    state: stateOf(row[5]),
    priority: row[6],
    delay: row[7],
    timestamp: row[8],
    attemptsMade: row[9],
    attemptsStarted: row[10],
    stalledCounter: row[11],
  };
  if (row[12] !== null) record.processedOn = row[12];
  if (row[13] !== null) record.finishedOn = row[13];
  if (row[14] !== null) record.processedBy = row[14];
  if (row[15] !== null) record.returnvalue = row[15];
  if (row[16] !== null) record.failedReason = row[16];
  if (row[17] !== null) record.stacktrace = row[17];
  if (row[18] !== null) record.progress = row[18];
  if (row[19] !== null) record.lostBy = row[19];
  if (row[20] !== null) Object.assign(record, readExtras(row[20]));
  return record;
}

/** Builds the record of a job that never ran. */
export function toNewRecord(row: readonly [...WaitingRow, ...unknown[]], data: string): JobRecord {
  const [, id, name, , opts, priority, timestamp, , extras] = row;
  const none = { attemptsMade: 0, attemptsStarted: 0, stalledCounter: 0 };
  const record: JobRecord = { id, name, data, opts, state: 'waiting', priority, delay: 0, timestamp, ...none };
  return extras === null ? record : Object.assign(record, readExtras(extras));
}

/** Adds the lock to the record and returns the same object. */
export function toClaimed(record: JobRecord, session: string, fence: number): ClaimedJob {
  const claimed = record as ClaimedJob;
  claimed.token = tokenOf(session, fence);
  claimed.fence = fence;
  return claimed;
}

/** The inverse of `tokenOf`. For a text that is not a token of this format, it returns values that match no row. */
export function splitToken(token: string): { session: string; fence: number } {
  const colon = token.lastIndexOf(':');
  const digits = token.slice(colon + 1);
  const fence = Number(digits);
  return colon > 0 && String(fence) === digits ? { session: token.slice(0, colon), fence } : { session: '', fence: 0 };
}
