// The format of jobs in calls and replies. In calls: one array per column (`columnsOf`). In replies: one JSON array per column. One array per job took the server 5 µs a job; this format takes 1 µs. A large
// job would take 15 ms per megabyte, mostly for quoting and copies. So the texts of a job above `_inline` bytes are left out, and sent as
// rows afterwards (large_values): 5 ms per megabyte, in a statement that locks nothing. `listed` in sql/jobs.sql and
// `claimed-arrays` in sql/claim.sql make this format.
import { tokenOf } from '../../job/lock.js';
import type { ClaimedJob, JobRecord, NewJob } from '../../job/record.js';
import type { StoredState } from '../../job/state.js';
import { extrasOf, marksOf, readExtras } from '../marks.js';
import { STATE } from './driver/tables.js';

type Column<T> = T[] | null;

export type JobArrays = [
  id: Column<string>,
  name: Column<string>,
  /** Null for a job whose long texts were left out. */
  data: Column<string | null>,
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
  /** Not in the replies of claims (lost-by.ts). */
  lostBy?: Column<string | null>,
  /** The extras of marked jobs, by their ids. Null: no job is marked. */
  extras?: Record<string, string> | null,
  /** True if a list was cut. */
  more?: boolean | null,
];

/** How new jobs become columns, by the names of the parameters. `usual`: the value of a plain job. */
const COLUMNS: Record<string, { of: (job: NewJob) => unknown; usual?: unknown }> = {
  ids: { of: ({ id }) => id ?? null, usual: null },
  names: { of: ({ name }) => name },
  data: { of: ({ data }) => data },
  opts: { of: ({ opts }) => opts },
  priorities: { of: ({ priority }) => priority, usual: 0 },
  delays: { of: ({ delayMs }) => delayMs, usual: 0 },
  lifos: { of: ({ lifo }) => lifo, usual: false },
  timestamps: { of: ({ timestamp }) => timestamp },
  keys: { of: ({ lockKey }) => lockKey ?? null, usual: null },
  marks: { of: marksOf, usual: 0 },
  extras: { of: extrasOf, usual: null },
};

/** Returns the columns of new jobs. A job that is null is null in each column. */
export function columnsOf(jobs: (NewJob | null)[]): Record<string, unknown[]> {
  const columns = Object.entries(COLUMNS);
  return Object.fromEntries(columns.map(([name, { of }]) => [name, jobs.map((job) => (job === null ? null : of(job)))]));
}

/** Returns the columns of new jobs, with null for one that has only the usual value, so that it is not sent. */
export function unusualColumnsOf(jobs: NewJob[]): Record<string, unknown[] | null> {
  const columns = columnsOf(jobs);
  return Object.fromEntries(
    Object.entries(columns).map(([name, values]) => [name, values.every((value) => isUsual(name, value)) ? null : values]),
  );
}

/** True for a job with usual values alone: it is its name, data, opts and timestamp. */
export function isPlainJob(job: NewJob): boolean {
  return Object.entries(COLUMNS).every(([name, { of, usual }]) => usual === undefined || isUsual(name, of(job)));
}

function isUsual(name: string, value: unknown): boolean {
  return value === COLUMNS[name]?.usual;
}

const STATES: readonly StoredState[] = ['waiting', 'delayed', 'active', 'completed', 'failed', 'waiting-children'];

export function toRecords(jobs: JobArrays): JobRecord[] {
  return jobs[0]?.map((_, index) => recordAt(jobs, index)) ?? [];
}

/** `by`: the name of the worker that claimed them. */
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
    data: at(jobs[2], index) as string,
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
  const lostBy = at(jobs[19] ?? null, index);
  if (processedOn !== null) record.processedOn = processedOn;
  if (finishedOn !== null) record.finishedOn = finishedOn;
  if (processedBy !== null) record.processedBy = processedBy;
  if (returnvalue !== null) record.returnvalue = returnvalue;
  if (failedReason !== null) record.failedReason = failedReason;
  if (stacktrace !== null) record.stacktrace = stacktrace;
  if (progress !== null) record.progress = progress;
  if (lostBy !== null) record.lostBy = lostBy;
  const extras = jobs[20] ?? {};
  if (Object.hasOwn(extras, record.id)) Object.assign(record, readExtras(extras[record.id] as string));
  return record;
}

/** Jobs that wait for their key are waiting. */
function stateOf(state: number): StoredState {
  return STATES[Math.max(state, STATE.waiting) - 1] as StoredState;
}

/** Returns null for a missing column. */
function at<T>(column: Column<T>, index: number): T {
  return (column === null ? null : column[index]) as T;
}

/** The inverse of `tokenOf`. A text that is not a token of ours gets a pair that matches no row. */
export function splitToken(token: string): { session: string; fence: number } {
  const colon = token.lastIndexOf(':');
  const fence = Number(token.slice(colon + 1));
  const session = token.slice(0, Math.max(colon, 0));
  const whole = colon > 0 && Number.isSafeInteger(fence) && tokenOf(session, fence) === token;
  return whole ? { session, fence } : { session: '', fence: 0 };
}
