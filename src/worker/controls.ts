// What the methods of a worker do with its stations: its size, its limits, the cancels of its own runs, and its end.
import { HoldfastError, toError } from '../errors.js';
import type { Job } from '../handle/job.js';
import { checkGroupId } from '../job/group.js';
import { checkInteger, invalidOption, MAX_TIMER_MS } from '../runtime/check.js';
import type { QueueSettings } from '../store/contract/index.js';
import { checkConcurrency, checkPrefetch } from './options.js';
import { type CloseOptions, closeTerms, shutDown } from './shutdown.js';
import type { Stations } from './stations.js';

export function setConcurrency(stations: Stations, value: number): void {
  const { context, runs, storeLoop } = stations;
  const lowered = checkConcurrency(value) < context.opts.concurrency;
  context.opts.concurrency = value;
  context.slots.set(value);
  offerSlots(stations);
  if (lowered) runs?.handBackAhead();
  else runs?.beginNext();
  storeLoop.wake();
}

export function setPrefetch({ context, runs, storeLoop }: Stations, value: number): void {
  context.opts.prefetch = checkPrefetch(value, context.opts.batch);
  context.slots.prefetch = value;
  runs?.handBackAhead(value);
  storeLoop.wake();
}

/** Sets how many jobs the worker can run, for the sharing of a queue's global concurrency. */
export function offerSlots({ context: { lifecycle, owner, slots } }: Stations): void {
  owner.slots = lifecycle.isPaused || lifecycle.refusal !== undefined ? 0 : slots.concurrency;
}

export async function rateLimit(stations: Stations, ms: number): Promise<void> {
  await block(stations, ms, { blockedMs: checkInteger('rateLimit', ms, { max: MAX_TIMER_MS }) });
}

/** A job as `rateLimitGroup` takes it. */
export type GroupedJob = Pick<Job, 'gid'> & { id?: string };

export async function rateLimitGroup(stations: Stations, job: GroupedJob, ms: number): Promise<void> {
  const blockedMs = checkInteger('rateLimitGroup', ms, { max: MAX_TIMER_MS });
  await block(stations, ms, { group: { key: groupOf(job), blockedMs } });
}

async function block({ context, runs }: Stations, ms: number, settings: QueueSettings): Promise<void> {
  await (await context.ready()).configure(context.queue, settings);
  if (ms > 0) runs?.handBackAhead();
}

/** Aborts the signals of running jobs: of one job, or of all. Returns false if there is none. */
export function cancelRuns({ context, runs }: Stations, jobId: string | undefined, given: unknown): boolean {
  const reason = given === undefined ? new HoldfastError('CANCELLED', 'cancelled') : given;
  const found = jobId === undefined ? context.table.locks() : context.table.find(jobId);
  const locks = found.filter((lock) => runs?.isAhead(lock) !== true);
  for (const lock of locks) lock.cancel(reason);
  return locks.length > 0;
}

/** Never throws: bad input rejects. */
export function close(stations: Stations, given: boolean | CloseOptions): Promise<void> {
  let terms: ReturnType<typeof closeTerms>;
  try {
    terms = closeTerms(given);
  } catch (error) {
    return Promise.reject(toError(error));
  }
  const { lifecycle } = stations.context;
  const closing = lifecycle.close(terms.force, () => shutDown(stations));
  if (terms.timeoutMs !== undefined) lifecycle.interruptIn(terms.timeoutMs);
  return closing;
}

function groupOf(job: GroupedJob): string {
  if (typeof job !== 'object' || job === null) throw invalidOption('job', job, 'a job');
  if (job.gid !== undefined) return checkGroupId(job.gid, 'job.gid');
  const message = `Job ${job.id ?? ''} has no group: give jobs the option group: { id }, or use rateLimit for the whole queue.`;
  throw new HoldfastError('INVALID_OPTION', message, { option: 'job.gid', ...(job.id !== undefined && { jobId: job.id }) });
}
