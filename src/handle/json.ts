// A job as plain data, to be sent to another place and turned into a handle again. Payloads stay JSON text, as in the store.
import { type JobLock, lockNotHeld, NO_LOCK } from '../job/lock.js';
import type { LostBy } from '../job/lost-by.js';
import { checkJobName } from '../job/names.js';
import { checkJobOptions, type JobsOptions } from '../job/options.js';
import { encode, encodeData } from '../job/payload.js';
import type { ClaimedJob, JobRecord } from '../job/record.js';
import type { JobContext, JobProgress } from './job-context.js';

export interface JobJson extends JobRecord {
  /** Set for a job that was claimed for the receiver. */
  token?: string;
  fence?: number;
  /** The receiver's own name for the token. */
  alias?: string;
}

/** A job as plain data with decoded payloads. */
export interface JobView<Data, Result, Name extends string>
  extends Omit<
    JobRecord,
    'name' | 'data' | 'opts' | 'state' | 'progress' | 'returnvalue' | 'stacktrace' | 'failedReason' | 'lostBy'
  > {
  name: Name;
  data: Data;
  opts: JobsOptions;
  progress: JobProgress;
  returnvalue: Result;
  stacktrace: string[];
  /** Undefined until an attempt has failed; typed as in BullMQ. */
  failedReason: string;
  /** Only for a job that an owner lost. */
  lostBy?: LostBy;
  queueName: string;
  /** The id of the schedule that made the job. */
  repeatJobKey?: string;
}

/** Leaves out the token of a claimed job: the token gives the right to end the run. */
export function jsonOf(record: JobRecord): JobJson {
  const { token: _token, fence: _fence, ...rest } = record as JobJson;
  return rest;
}

export function jsonOfClaimed(claimed: ClaimedJob, alias: string | undefined): JobJson {
  return { ...claimed, ...(alias === undefined ? {} : { alias }) };
}

/** Missing fields get the values of a new job; `opts` may also be an object. */
export function partsOf(
  context: JobContext,
  json: Partial<Omit<JobJson, 'opts'>> & { opts?: string | object },
  id?: string,
): { record: JobRecord; lock: JobLock; alias: string | undefined } {
  const { token, fence, alias, opts, ...rest } = json;
  const record: JobRecord = {
    name: '',
    data: '{}',
    state: 'waiting',
    priority: 0,
    delay: 0,
    timestamp: Date.now(),
    attemptsMade: 0,
    attemptsStarted: 0,
    stalledCounter: 0,
    ...rest,
    id: id ?? json.id ?? '',
    opts: typeof opts === 'object' ? encode('Options of the job', opts) : (opts ?? '{}'),
  };
  return { record, lock: lockOf(context, record, token, fence), alias };
}

/** Returns the record of a job that was not added. `opts`: as the user gave them. */
export function unaddedRecord(context: JobContext, name: string, data: unknown, opts: JobsOptions = {}, id?: string): JobRecord {
  const { jobId, sizeLimit, priority = 0, delay = 0, timestamp = Date.now() } = checkJobOptions(opts);
  const json = { name: checkJobName(name), data: encodeData(name, data, sizeLimit), opts, priority, delay, timestamp };
  return partsOf(context, json, id ?? jobId).record;
}

function lockOf(context: JobContext, record: JobRecord, token: string | undefined, fence: number | undefined): JobLock {
  if (token === undefined || fence === undefined) return NO_LOCK;
  const kept = context.lockFor?.({ ...record, token, fence });
  // The context no longer holds the lock: only its token and fence are left, and writes must still carry them.
  return kept?.token === token ? kept : lockNotHeld(token, fence);
}
