// The columns of a job's row, and the records that the store builds from them.
import { tokenOf } from '../../job/lock.js';
import type { ClaimedJob, JobRecord } from '../../job/record.js';
import type { StoredState } from '../../job/state.js';

export const JOB_COLUMNS =
  'job, id, name, data, opts, state, priority, delay, timestamp, attemptsMade, attemptsStarted, stalledCounter, ' +
  'processedOn, finishedOn, processedBy, returnvalue, failedReason, stacktrace, progress, lostBy';

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
];

/** SQL expression: bytes of a job's payloads. SQLite knows them without reading the payloads. */
export const JOB_BYTES =
  'octet_length(data) + coalesce(octet_length(returnvalue), 0) + coalesce(octet_length(progress), 0) + coalesce(octet_length(stacktrace), 0)';

/**
 * The columns that a claim needs of a waiting job that never ran. If `worn` is 1, the caller reads the whole row. Eight columns
 * take 1.0 µs a job, all twenty 1.9 µs. The parameter is the longest `data` that is read at once; a longer one is null.
 */
export const WAITING_COLUMNS =
  'job, id, name, CASE WHEN octet_length(data) <= ? THEN data END, opts, priority, timestamp, (attemptsMade + attemptsStarted + stalledCounter + delay > 0 OR coalesce(' +
  'processedOn, finishedOn, processedBy, returnvalue, failedReason, stacktrace, progress) IS NOT NULL) AS worn';

export type WaitingRow = [
  job: number,
  id: string,
  name: string,
  data: string | null,
  opts: string,
  priority: number,
  timestamp: number,
  worn: number,
];

/** States by their numbers in STATE. */
const STATES: readonly StoredState[] = ['waiting', 'waiting', 'delayed', 'active', 'completed', 'failed'];

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
  return record;
}

/** Builds the record of a job that never ran. */
export function toNewRecord([, id, name, , opts, priority, timestamp]: WaitingRow, data: string): JobRecord {
  const none = { attemptsMade: 0, attemptsStarted: 0, stalledCounter: 0 };
  return { id, name, data, opts, state: 'waiting', priority, delay: 0, timestamp, ...none };
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
