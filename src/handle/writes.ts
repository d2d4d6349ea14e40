// The writes of a handle that do not move its job: data, progress, logs. A handle that came with a lock sends its token with each.
import { HoldfastError } from '../errors.js';
import { encode, encodeData } from '../job/payload.js';
import { checkInteger, keepable, show } from '../runtime/check.js';
import type { JobWrite, WriteReply } from '../store/contract/index.js';
import type { JobSnapshot } from './job-snapshot.js';
import type { JobProgress } from './job-context.js';

/** The longest log row, in characters. Longer rows are cut. */
const MAX_ROW = 65_536;

type Content = JobWrite extends infer W ? (W extends JobWrite ? Omit<W, 'jobId' | 'token'> : never) : never;

export async function writeData(snapshot: JobSnapshot, data: unknown): Promise<void> {
  const text = encodeData(snapshot.record.name, data, snapshot.job.opts.sizeLimit);
  await write(snapshot, 'updateData', { kind: 'data', data: text }, snapshot.token);
  snapshot.record.data = text;
  snapshot.job.data = data ?? {};
}

export async function writeProgress(snapshot: JobSnapshot, progress: JobProgress): Promise<void> {
  const text = encodeProgress(snapshot.record.id, progress);
  await write(snapshot, 'updateProgress', { kind: 'progress', progress: text }, snapshot.token);
  snapshot.record.progress = text;
  snapshot.job.progress = progress;
}

/** Returns how many log rows the job has now. */
export async function writeLog(snapshot: JobSnapshot, row: unknown): Promise<number> {
  const keep = snapshot.job.opts.keepLogs;
  const content: Content = { kind: 'log', row: encodeRow(row), ...(keep === undefined ? {} : { keep }) };
  return (await write(snapshot, 'log', content, tokenForLogs(snapshot))).count ?? 0;
}

export async function clearLogs(snapshot: JobSnapshot, keep?: number): Promise<void> {
  if (keep !== undefined) checkInteger('keepLogs', keep);
  await write(snapshot, 'clearLogs', { kind: 'clearLogs', ...(keep === undefined ? {} : { keep }) }, snapshot.token);
}

/** Returns false if the job has no deduplication id, or does not own the entry of its id. */
export async function freeDeduplicationId({ context, record }: JobSnapshot): Promise<boolean> {
  if (record.deduplicationId === undefined) return false;
  const what = { deduplication: [record.deduplicationId], ownedBy: record.id };
  return (await (await context.ready()).forget(context.stored, what)) > 0;
}

export function encodeProgress(jobId: string, progress: unknown): string {
  if (progress === null || progress === undefined || Number.isNaN(progress)) {
    throw new HoldfastError(
      'INVALID_PAYLOAD',
      `Progress of job ${jobId} must be a number, string, boolean or object, but it is ${show(progress)}.`,
    );
  }
  return encode(`Progress of job ${jobId}`, progress);
}

export function encodeRow(row: unknown): string {
  return keepable(typeof row === 'string' ? row : encode('A log row', row), MAX_ROW);
}

async function write(snapshot: JobSnapshot, action: string, content: Content, token: string | undefined): Promise<WriteReply> {
  const store = await snapshot.context.ready();
  const [reply] = await store.write(snapshot.context.stored, [
    { jobId: snapshot.record.id, ...(token === undefined ? {} : { token }), ...content },
  ]);
  snapshot.accept(reply?.status ?? 'missing', action);
  return reply as WriteReply;
}

/**
 * After its owner has settled the run, a log row needs no token: listeners of `completed` and `failed` often log, which does no harm. A handler
 * that goes on after its run was ended without it may not.
 */
function tokenForLogs(snapshot: JobSnapshot): string | undefined {
  return snapshot.ended && !snapshot.isCutShort ? undefined : snapshot.token;
}
