// Converts between the two texts of a stored job (see lua/jobs.lua) and job records. Texts that are joined with NUL must contain
// no NUL: names are checked for it, JSON cannot contain one, and `freeText` replaces it in all other texts.
import type { JobRecord, NewJob } from '../../job/record.js';
import type { StoredState } from '../../job/state.js';
import { extrasOf, marksOf, readExtras } from '../marks.js';
import { RUN_FIELDS } from './driver/lua-lists.js';

const STATES: Record<string, StoredState> = {
  w: 'waiting',
  d: 'delayed',
  a: 'active',
  c: 'completed',
  f: 'failed',
  p: 'waiting-children',
};

/** The letter that stands for a state. */
export const LETTER: Record<StoredState, string> = {
  waiting: 'w',
  delayed: 'd',
  active: 'a',
  completed: 'c',
  failed: 'f',
  'waiting-children': 'p',
};

export function jobText({ timestamp, name, opts, data }: NewJob): string {
  return `${timestamp}\0${freeText(name)}\0${opts}\0${data}`;
}

/** Returns the marks and extras of a job as `entries` in lua/deduplication.lua stores them; '' for a plain job. */
export function extraText(job: NewJob): string {
  const [marks, extras] = [marksOf(job), extrasOf(job)];
  return marks === 0 && extras === null ? '' : `${marks},${extras ?? '{}'}`;
}

/** The number of fields of a job text. */
export const JOB_FIELDS = 4;

/** Splits a job text. If the text is damaged, options and data are empty: that is no JSON, so the worker fails the job. */
export function fieldsOf(text: string): string[] {
  const fields = text.split('\0');
  return fields.length === JOB_FIELDS ? fields : [fields[0] ?? '', fields[1] ?? '', '', ''];
}

export function freeText(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text;
}

/** Texts that few jobs have. */
export interface Sides {
  reason?: string | null | undefined;
  stack?: string | null | undefined;
  value?: string | null | undefined;
  progress?: string | null | undefined;
  lost?: string | null | undefined;
  extra?: string | null | undefined;
}

function toRecord(id: string, job: string, run: string, sides: Sides): JobRecord {
  const [numbers = '', , by = ''] = run.split('\0', 3);
  const values = numbers.split(',');
  const { state, finished, processed, delay, made, started, priority, stalls } = Object.fromEntries(
    RUN_FIELDS.map((name, index) => [name, values[index] ?? '']),
  ) as Record<(typeof RUN_FIELDS)[number], string>;
  const [timestamp, name = '', opts = '', data = ''] = fieldsOf(job);
  const record: JobRecord = {
    id,
    name,
    data,
    opts,
    state: STATES[state.toLowerCase()] as StoredState,
    priority: Number(priority),
    delay: Number(delay),
    timestamp: Number(timestamp),
    attemptsMade: Number(made),
    attemptsStarted: Number(started),
    stalledCounter: Number(stalls),
  };
  if (processed !== '') record.processedOn = Number(processed);
  if (finished !== '') record.finishedOn = Number(finished);
  if (by !== '') record.processedBy = by.slice(1);
  // Null, which many handlers return, is not stored.
  if (record.state === 'completed') record.returnvalue = sides.value ?? 'null';
  addSides(record, sides);
  // A process of an older version, which does not know `lost`, may have removed a job with this id and left its `lost` behind. A step of the
  // owner sets the count of stalls to 0, and that version knows no steps.
  if (typeof sides.lost === 'string' && (record.stalledCounter > 0 || record.hasSteps === true)) record.lostBy = sides.lost;
  return record;
}

export function addSides(record: JobRecord, { reason, stack, progress, extra }: Sides): void {
  if (typeof extra === 'string') addExtras(record, readExtras(extra.slice(extra.indexOf(',') + 1)));
  if (typeof reason === 'string') record.failedReason = reason;
  if (typeof stack === 'string') record.stacktrace = stack;
  if (typeof progress === 'string') record.progress = progress;
}

function addExtras(record: JobRecord, fields: Partial<JobRecord>): void {
  Object.assign(record, fields);
  // The stored parents also hold their bonds: see lua/families.lua.
  if (fields.parents !== undefined)
    record.parents = fields.parents.map(({ queue, id, onFailure }) => ({
      queue,
      id,
      ...(onFailure !== undefined && { onFailure }),
    }));
}

type Column = (string | null)[];
/** The columns that `records` in lua/jobs.lua returns. */
export type Columns = [
  ids: string[],
  runs: Column,
  jobs: Column,
  reasons: Column,
  stacks: Column,
  values: Column,
  progress: Column,
  losses: Column,
  extras: Column,
];

/** Returns the records of the columns; undefined for a job that does not exist. */
export function toRecords([ids, runs, jobs, reasons, stacks, values, progress, losses, extras]: Columns): (
  | JobRecord
  | undefined
)[] {
  return ids.map((id, index) => {
    const run = runs[index];
    const job = jobs[index];
    if (typeof run !== 'string' || typeof job !== 'string') return undefined;
    return toRecord(id, job, run, {
      reason: reasons[index],
      stack: stacks[index],
      value: values[index],
      progress: progress[index],
      lost: losses[index],
      extra: extras[index],
    });
  });
}
