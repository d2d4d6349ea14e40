// A job's row as it is read, and the records that are made of it.
import { tokenOf } from '../../job/lock.js';
import type { ClaimedJob, JobRecord } from '../../job/record.js';
import type { StoredState } from '../../job/state.js';

export const JOB_COLUMNS =
  'job, id, name, data, opts, state, priority, delay, timestamp, attemptsMade, attemptsStarted, stalledCounter, ' +
  'processedOn, finishedOn, processedBy, returnvalue, failedReason, stacktrace, progress';

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
];

/** By their numbers in STATE. */
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
  return record;
}

export function toClaimed(row: JobRow, session: string, fence: number): ClaimedJob {
  return Object.assign(toRecord(row), { token: tokenOf(session, fence), fence });
}

/** The inverse of `tokenOf`. What is no token of ours matches no row. */
export function splitToken(token: string): { session: string; fence: number } {
  const colon = token.lastIndexOf(':');
  const fence = Number(token.slice(colon + 1));
  const session = token.slice(0, Math.max(colon, 0));
  return colon > 0 && tokenOf(session, fence) === token ? { session, fence } : { session: '', fence: 0 };
}
