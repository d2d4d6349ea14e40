// Jobs as they cross the wire: an array for each column, in JSON. One array for each job took the server 5 µs a job, this takes 1 µs.
import { tokenOf } from '../../job/lock.js';
import type { ClaimedJob, JobRecord } from '../../job/record.js';
import type { StoredState } from '../../job/state.js';
import { STATE } from './tables.js';

const COLUMNS = [
  'id', 'name', 'data', 'opts', 'state', 'priority', 'delay', 'timestamp', 'attempts_made', 'attempts_started', 'stalled_counter',
  'processed_on', 'finished_on', 'processed_by', 'returnvalue', 'failed_reason', 'stacktrace', 'progress', 'fence',
]; // biome-ignore format: the order of JobArrays

/** What is the same in all jobs that are claimed together, or never there. */
const IMPLIED = ['state', 'delay', 'finished_on', 'processed_by', 'returnvalue'];

const arrays = (columns: string[]) => `json_build_array(${columns.join(', ')})::text`;

/** Aggregates over rows that have these columns, in their order. Without rows, all of it is null. */
export const JOB_ARRAYS = arrays(COLUMNS.map((column) => `array_agg(${column})`));
export const CLAIMED_ARRAYS = arrays(COLUMNS.map((column) => (IMPLIED.includes(column) ? 'NULL' : `array_agg(${column})`)));
/** The same of one row. */
export const CLAIMED_ONE = arrays(COLUMNS.map((column) => (IMPLIED.includes(column) ? 'NULL' : `ARRAY[${column}]`)));
export const CLAIMED_COLUMNS = COLUMNS.filter((column) => !IMPLIED.includes(column))
  .map((column) => `jobs.${column}`)
  .join(', ');

type Column<T> = T[] | null;

export type JobArrays = [
  id: Column<string>,
  name: Column<string>,
  data: Column<string>,
  opts: Column<string>,
  state: Column<number>,
  priority: Column<number>,
  delay: Column<number>,
  timestamp: Column<number>,
  attemptsMade: Column<number>,
  attemptsStarted: Column<number>,
  stalledCounter: Column<number>,
  processedOn: Column<number | null>,
  finishedOn: Column<number | null>,
  processedBy: Column<string | null>,
  returnvalue: Column<string | null>,
  failedReason: Column<string | null>,
  stacktrace: Column<string | null>,
  progress: Column<string | null>,
  fence: Column<number | null>,
];

const STATES: readonly StoredState[] = ['waiting', 'delayed', 'active', 'completed', 'failed'];

export function toRecords(jobs: JobArrays): JobRecord[] {
  return jobs[0]?.map((_, index) => recordAt(jobs, index)) ?? [];
}

/** `by`: who claimed them. */
export function toClaimed(jobs: JobArrays, session: string, by: string | undefined): ClaimedJob[] {
  return toRecords(jobs).map((record, index) => {
    const claimed = record as ClaimedJob;
    claimed.fence = at(jobs[18], index) ?? 0;
    claimed.token = tokenOf(session, claimed.fence);
    if (by !== undefined) claimed.processedBy = by;
    return claimed;
  });
}

function recordAt(jobs: JobArrays, index: number): JobRecord {
  const record: JobRecord = {
    id: at(jobs[0], index),
    name: at(jobs[1], index),
    data: at(jobs[2], index),
    opts: at(jobs[3], index),
    state: jobs[4] === null ? 'active' : stateOf(at(jobs[4], index)),
    priority: at(jobs[5], index),
    delay: jobs[6] === null ? 0 : at(jobs[6], index),
    timestamp: at(jobs[7], index),
    attemptsMade: at(jobs[8], index),
    attemptsStarted: at(jobs[9], index),
    stalledCounter: at(jobs[10], index),
  };
  const processedOn = at(jobs[11], index);
  const finishedOn = at(jobs[12], index);
  const processedBy = at(jobs[13], index);
  const returnvalue = at(jobs[14], index);
  const failedReason = at(jobs[15], index);
  const stacktrace = at(jobs[16], index);
  const progress = at(jobs[17], index);
  if (processedOn !== null) record.processedOn = processedOn;
  if (finishedOn !== null) record.finishedOn = finishedOn;
  if (processedBy !== null) record.processedBy = processedBy;
  if (returnvalue !== null) record.returnvalue = returnvalue;
  if (failedReason !== null) record.failedReason = failedReason;
  if (stacktrace !== null) record.stacktrace = stacktrace;
  if (progress !== null) record.progress = progress;
  return record;
}

/** Those that wait for their key are waiting. */
function stateOf(state: number): StoredState {
  return STATES[Math.max(state, STATE.waiting) - 1] as StoredState;
}

/** Of a column that is not there: null. */
function at<T>(column: Column<T>, index: number): T {
  return (column === null ? null : column[index]) as T;
}

/** The inverse of `tokenOf`. What is no token of ours matches no row. */
export function splitToken(token: string): { session: string; fence: number } {
  const colon = token.lastIndexOf(':');
  const fence = Number(token.slice(colon + 1));
  const session = token.slice(0, Math.max(colon, 0));
  const whole = colon > 0 && Number.isSafeInteger(fence) && tokenOf(session, fence) === token;
  return whole ? { session, fence } : { session: '', fence: 0 };
}
