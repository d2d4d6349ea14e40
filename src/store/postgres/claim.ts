// Claims jobs: a session asks for the next jobs, or for jobs by id, and gets them with their locks in one atomic step. A repeated claim
// (same session and number) must return the same jobs and never more. Plain claims take the fast path (claim_plain).
import type { ClaimedJob } from '../../job/record.js';
import type { ClaimReply, ClaimRequest, ScheduleRecord } from '../contract/index.js';
import { type JobArrays, toClaimed } from './record.js';
import { fillClaimed, INLINE_BYTES, inlineBytes } from './state/large-values.js';
import type { Engine } from './driver/engine.js';
import type { Server } from './driver/server.js';

type Debt = [jobId: string, schedule: ScheduleRecord, now: number];

/** A part without jobs: start_runs. */
type DebtsPart = [id: null, debts: Debt[]];

export interface ClaimedRow {
  /** One part for each grant of the claim, and one for the debts of its jobs. */
  jobs: (JobArrays | DebtsPart)[];
  alive: boolean;
  paused: boolean;
  limited: number;
  next: number | null;
  drained: boolean;
  more: boolean;
  undone?: true;
}

/** Returns a number of jobs as an argument. */
export function countOf(request: ClaimRequest): number {
  return Math.min(request.count, 2 ** 31 - 1);
}

export function toClaimReply(row: ClaimedRow, { session, by }: ClaimRequest): ClaimReply {
  const { jobs, alive, paused, limited, next, drained, more, undone } = row;
  const claimed: ClaimedJob[] = [];
  for (const part of jobs) {
    if (isDebts(part)) addDebts(claimed, part[1]);
    else claimed.push(...toClaimed(part, session, by));
  }
  const reply: ClaimReply = { jobs: claimed, sessionAlive: alive, paused, drained };
  if (limited > 0) reply.limitedMs = limited;
  if (next !== null) reply.nextInMs = next;
  if (more) reply.more = true;
  if (undone === true) reply.undone = true;
  return reply;
}

function isDebts(part: JobArrays | DebtsPart): part is DebtsPart {
  return part[0] === null && part[1] !== null;
}

/** The debts come after their jobs. */
function addDebts(claimed: ClaimedJob[], debts: Debt[]): void {
  for (const [jobId, record, now] of debts) {
    const job = claimed.find(({ id }) => id === jobId);
    if (job !== undefined) job.debt = { ...record, now };
  }
}

export async function claim(engine: Engine, queue: string, request: ClaimRequest): Promise<ClaimReply> {
  const { server, wake, callOrder, fitting, unanswered } = engine;
  const doubtful = unanswered.has(request.session);
  unanswered.add(request.session);
  const changes = wake.claiming(queue);
  const sent = fitting.limit(queue, request);
  const call = { caller: request.session, seq: request.seq };
  const reply = await callOrder.run(call, () => claimSome(server, queue, sent, doubtful));
  unanswered.delete(request.session);
  fitting.learn(queue, request, sent, reply);
  wake.claimed(queue, changes, request.count, reply);
  // Another claim may have skipped the jobs that did not fit into this reply.
  if (reply.jobs.length > 0) wake.signal(queue, reply.more === true ? 'jobs' : 'news');
  return reply;
}

async function claimSome(server: Server, queue: string, request: ClaimRequest, remember: boolean): Promise<ClaimReply> {
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
