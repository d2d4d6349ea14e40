// Reads the texts of large jobs, which claim and list replies leave out (record.ts). The texts come as rows, one by one as the server
// reads them, in a separate statement that locks nothing. A claim with megabytes in its reply held its row locks for as long as the reply
// travelled.
import { type ClaimedJob, hasStalled, type JobRecord } from '../../../job/record.js';
import { REPLY_BYTES } from '../../budget.js';
import type { ClaimReply } from '../../contract/index.js';
import { fillLosses } from './lost-by.js';
import type { Server } from '../driver/server.js';

/** Bytes: jobs up to this size travel in the reply itself. Packing this much takes about as long as a round trip. */
export const INLINE_BYTES = 16 * 1024;

/** Bytes of a job that always travel in the reply, however many jobs are requested. */
const LEAST_BYTES = 1024;

/**
 * Returns INLINE_BYTES for a claim of `count` jobs, which packs jobs before it knows whether they fit into one reply (`take` in
 * sql/claim.sql).
 */
export function inlineBytes(count: number): number {
  return Math.max(LEAST_BYTES, Math.min(INLINE_BYTES, Math.floor(REPLY_BYTES / count)));
}

type LargeRow = [id: string, data: string, progress: string | null, returnvalue: string | null];

/** Fills in the texts that were left out. Drops the records whose jobs are gone. */
export async function fillRecords<T extends JobRecord>(server: Server, queue: string, records: T[]): Promise<T[]> {
  const missing = records.filter(isCut);
  if (missing.length === 0) return records;
  const fences = missing.map((record) => ('fence' in record ? (record as unknown as ClaimedJob).fence : null));
  const values = { name: queue, ids: missing.map(({ id }) => id), fences };
  const rows = (await server.rows('large_values', values)) as LargeRow[];
  const found = new Map(rows.map((row) => [row[0], row]));
  for (const record of missing) {
    const [, data, progress, returnvalue] = found.get(record.id) ?? [];
    if (data === undefined) continue;
    record.data = data;
    if (progress !== null && progress !== undefined) record.progress = progress;
    // A claimed job has no result yet: a result in its row belongs to an earlier run.
    if (returnvalue !== null && returnvalue !== undefined && !('fence' in record)) record.returnvalue = returnvalue;
  }
  return records.filter((record) => !isCut(record));
}

/** Drops a claimed job whose lock was taken away meanwhile: the caller no longer owns it. */
export async function fillClaimed(server: Server, queue: string, reply: ClaimReply): Promise<ClaimReply> {
  reply.jobs = await fillRecords(server, queue, reply.jobs);
  if (reply.jobs.some(hasStalled)) await fillLosses(server, queue, reply.jobs);
  return reply;
}

function isCut({ data }: JobRecord): boolean {
  return (data as string | null) === null;
}
