// Claims jobs: a session asks for the next jobs, or for jobs by id, and gets them with their locks in one atomic step. A repeated claim
// (same session and number) must return the same jobs and never more. Plain claims take the fast path (sql/claim-plain.sql).
import type { ClaimReply, ClaimRequest } from '../contract/index.js';
import { type JobArrays, toClaimed } from './job-row.js';
import { fillClaimed, INLINE_BYTES, inlineBytes } from './large-values.js';
import type { Server } from './server.js';

export interface ClaimedRow {
  /** One part for each grant of the claim. */
  jobs: JobArrays[];
  alive: boolean;
  paused: boolean;
  limited: number;
  next: number | null;
  drained: boolean;
  more: boolean;
}

/** Returns a number of jobs as an argument. */
export function countOf(request: ClaimRequest): number {
  return Math.min(request.count, 2 ** 31 - 1);
}

export function toClaimReply(row: ClaimedRow, { session, by }: ClaimRequest): ClaimReply {
  const { jobs, alive, paused, limited, next, drained, more } = row;
  const reply: ClaimReply = { jobs: jobs.flatMap((part) => toClaimed(part, session, by)), sessionAlive: alive, paused, drained };
  if (limited > 0) reply.limitedMs = limited;
  if (next !== null) reply.nextInMs = next;
  if (more) reply.more = true;
  return reply;
}

export async function claim(server: Server, queue: string, request: ClaimRequest, remember: boolean): Promise<ClaimReply> {
  const plain = remember || !isPlain(request) ? undefined : await claimPlain(server, queue, request);
  const row = plain ?? (await claimAny(server, queue, request, remember));
  return fillClaimed(server, queue, toClaimReply(row, request));
}

/** True if the fast path can carry out the request. */
export function isPlain({ jobIds, timedMs, limit }: ClaimRequest): boolean {
  return jobIds === undefined && timedMs === undefined && limit === undefined;
}

/** Returns undefined if connections are not set up for the fast path. */
async function claimPlain(server: Server, queue: string, request: ClaimRequest): Promise<ClaimedRow | undefined> {
  const { session, seq, count, by } = request;
  const values = { name: queue, session, seq, count: countOf(request), by, inline: inlineBytes(count) };
  const rows = await server.short('claim_plain', values);
  return rows === undefined ? undefined : (JSON.parse(rows[0]?.[0] as string) as ClaimedRow);
}

function claimAny(server: Server, queue: string, request: ClaimRequest, remember: boolean): Promise<ClaimedRow> {
  const { session, seq, jobIds, by, timedMs, limit } = request;
  return server.call<ClaimedRow>('claim', {
    name: queue,
    session,
    seq,
    count: countOf(request),
    ids: jobIds,
    by,
    timed: timedMs,
    max: limit?.max,
    window: limit?.durationMs,
    remember,
    inline: INLINE_BYTES,
  });
}
