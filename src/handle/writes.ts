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

export function writeData(snapshot: JobSnapshot, data: unknown): Promise<void> {
  const make = () => ({ kind: 'data', data: encodeData(snapshot.record.name, data, snapshot.job.opts.sizeLimit) }) as const;
  return write(snapshot, 'updateData', make, (_reply, { data: text }) => {
    snapshot.record.data = text;
    snapshot.job.data = data ?? {};
  });
}

export function writeProgress(snapshot: JobSnapshot, progress: JobProgress, onWritten: () => void): Promise<void> {
  const make = () => ({ kind: 'progress', progress: encodeProgress(snapshot.record.id, progress) }) as const;
  return write(snapshot, 'updateProgress', make, (_reply, { progress: text }) => {
    snapshot.record.progress = text;
    snapshot.job.progress = progress;
    onWritten();
  });
}

/** Returns how many log rows the job has now. */
export function writeLog(snapshot: JobSnapshot, row: unknown): Promise<number> {
  const make = () => {
    const keep = snapshot.job.opts.keepLogs;
    return { kind: 'log', row: encodeRow(row), ...(keep === undefined ? {} : { keep }) } as const;
  };
  return write(snapshot, 'log', make, ({ count = 0 }) => count);
}

export function clearLogs(snapshot: JobSnapshot, keep?: number): Promise<void> {
  const make = () => ({ kind: 'clearLogs', ...(keep === undefined ? {} : { keep: checkInteger('keepLogs', keep) }) }) as const;
  return write(snapshot, 'clearLogs', make, () => undefined);
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

/**
 * Rejects if `make` throws, or if the store refuses. The latter never rejects unhandled: a handler that does not await its write may have
 * ended when the reply comes. The worker warns of such a call.
 */
function write<C extends Content, R>(
  snapshot: JobSnapshot,
  action: string,
  make: () => C,
  read: (reply: WriteReply, content: C) => R,
): Promise<R> {
  let content: C;
  try {
    content = make();
  } catch (error) {
    return Promise.reject(error as Error);
  }
  const call = send(snapshot, action, content).then((reply) => read(reply, content));
  if (snapshot.token !== undefined) {
    snapshot.openWrites += 1;
    const ended = (): void => void (snapshot.openWrites -= 1);
    call.then(ended, ended);
  }
  return call;
}

async function send(snapshot: JobSnapshot, action: string, content: Content): Promise<WriteReply> {
  const token = tokenFor(snapshot, content);
  const store = await snapshot.context.ready();
  const [reply] = await store.write(snapshot.context.stored, [
    { jobId: snapshot.record.id, ...(token === undefined ? {} : { token }), ...content },
  ]);
  snapshot.accept(reply?.status ?? 'missing', action);
  return reply as WriteReply;
}

/**
 * A handler that has moved its job itself may still update it, as BullMQ documents it for step jobs. One that goes on after its run was
 * ended without it may not: another owner may run the job. A log row only adds, and listeners of `completed` and `failed` often log.
 */
function tokenFor(snapshot: JobSnapshot, { kind }: Content): string | undefined {
  const isFree = snapshot.hasMoved || (kind === 'log' && snapshot.ended);
  return isFree && !snapshot.isCutShort ? undefined : snapshot.token;
}
