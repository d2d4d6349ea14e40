// A job as it crosses the wire: an array in JSON, and the records that are made of it.
import { tokenOf } from '../../job/lock.js';
import type { ClaimedJob, JobRecord } from '../../job/record.js';
import type { StoredState } from '../../job/state.js';
import { expression } from './sql-function.js';

export const JOB_FUNCTIONS = expression(
  'job_row(j jobs)',
  'json',
  'STABLE',
  `json_build_array(j.id, j.name, j.data, j.opts, j.state, j.priority, j.delay, j.timestamp, j.attempts_made, j.attempts_started,
     j.stalled_counter, j.processed_on, j.finished_on, j.processed_by, j.returnvalue, j.failed_reason, j.stacktrace, j.progress, j.fence)`,
);

export type JobRow = [
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
  fence: number | null,
];

const STATES: readonly StoredState[] = ['waiting', 'delayed', 'active', 'completed', 'failed'];

export function toRecord(row: JobRow): JobRecord {
  const record: JobRecord = {
    id: row[0],
    name: row[1],
    data: row[2],
    opts: row[3],
    state: STATES[row[4] - 1] as StoredState,
    priority: row[5],
    delay: row[6],
    timestamp: row[7],
    attemptsMade: row[8],
    attemptsStarted: row[9],
    stalledCounter: row[10],
  };
  if (row[11] !== null) record.processedOn = row[11];
  if (row[12] !== null) record.finishedOn = row[12];
  if (row[13] !== null) record.processedBy = row[13];
  if (row[14] !== null) record.returnvalue = row[14];
  if (row[15] !== null) record.failedReason = row[15];
  if (row[16] !== null) record.stacktrace = row[16];
  if (row[17] !== null) record.progress = row[17];
  return record;
}

export function toClaimed(row: JobRow, session: string): ClaimedJob {
  const fence = row[18] ?? 0;
  return Object.assign(toRecord(row), { token: tokenOf(session, fence), fence });
}

/** The inverse of `tokenOf`. What is no token of ours matches no row. */
export function splitToken(token: string): { session: string; fence: number } {
  const colon = token.lastIndexOf(':');
  const fence = Number(token.slice(colon + 1));
  const session = token.slice(0, Math.max(colon, 0));
  const whole = colon > 0 && Number.isSafeInteger(fence) && tokenOf(session, fence) === token;
  return whole ? { session, fence } : { session: '', fence: 0 };
}
