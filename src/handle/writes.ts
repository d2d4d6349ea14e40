// What a handle writes to its job without moving it: data, progress, logs. A handle that came with a lock sends its token with each.
import { HoldfastError } from '../errors.js';
import { encode, encodeData } from '../job/payload.js';
import { checkInteger, keepable, show } from '../runtime/check.js';
import type { Write, WriteReply } from '../store/contract.js';
import type { Card } from './card.js';
import type { JobProgress } from './home.js';

/** Characters of one log row. Longer rows are cut. */
const MAX_ROW = 65_536;

type Content = Write extends infer W ? (W extends Write ? Omit<W, 'jobId' | 'token'> : never) : never;

export async function writeData(card: Card, data: unknown): Promise<void> {
  const text = encodeData(card.record.name, data, card.job.opts.sizeLimit);
  await write(card, 'updateData', { kind: 'data', data: text }, card.token);
  card.record.data = text;
  card.job.data = data ?? {};
}

export async function writeProgress(card: Card, progress: JobProgress): Promise<void> {
  const text = encodeProgress(card.record.id, progress);
  await write(card, 'updateProgress', { kind: 'progress', progress: text }, card.token);
  card.record.progress = text;
  card.job.progress = progress;
}

/** Answers how many rows the job has now. */
export async function writeLog(card: Card, row: unknown): Promise<number> {
  const keep = card.job.opts.keepLogs;
  const content: Content = { kind: 'log', row: encodeRow(row), ...(keep === undefined ? {} : { keep }) };
  return (await write(card, 'log', content, tokenForLogs(card))).count ?? 0;
}

export async function clearLogs(card: Card, keep?: number): Promise<void> {
  if (keep !== undefined) checkInteger('keepLogs', keep);
  await write(card, 'clearLogs', { kind: 'clearLogs', ...(keep === undefined ? {} : { keep }) }, tokenForLogs(card));
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

async function write(card: Card, action: string, content: Content, token: string | undefined): Promise<WriteReply> {
  const store = await card.home.ready();
  const [reply] = await store.write(card.home.stored, [
    { jobId: card.record.id, ...(token === undefined ? {} : { token }), ...content },
  ]);
  card.accept(reply?.status ?? 'missing', action);
  return reply as WriteReply;
}

/** Listeners of `completed` and `failed` like to log: a row more harms nobody once the run has been settled by its owner. */
function tokenForLogs(card: Card): string | undefined {
  return card.ended ? undefined : card.token;
}
