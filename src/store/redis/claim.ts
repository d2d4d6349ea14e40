import type { ClaimReply, ClaimRequest } from '../contract.js';
import type { Argument } from './driver.js';
import { freeText, toClaimed } from './job-text.js';
import type { Runner } from './runner.js';

/** As lua/shared/claim.lua answers. */
export type RawClaim = [
  alive: number,
  paused: number,
  limitedMs: number,
  nextInMs: number,
  drained: number,
  ids: string[],
  runs: string[],
  jobs: (string | null)[],
  reasons?: (string | null)[],
  stacks?: (string | null)[],
  progress?: (string | null)[],
];

export async function claim(run: Runner, queue: string, request: ClaimRequest): Promise<ClaimReply> {
  return readClaim((await run('claim', queue, [...claimArguments(request), ...(request.jobIds ?? [])])) as RawClaim);
}

/** All but the ids, which come at the end of all arguments. */
export function claimArguments({ session, seq, count, by, timedMs, limit, jobIds }: ClaimRequest): Argument[] {
  return [
    session,
    seq,
    count,
    by === undefined ? '' : `=${freeText(by)}`,
    timedMs ?? '',
    limit?.max ?? '',
    limit?.durationMs ?? '',
    jobIds?.length ?? '',
  ];
}

export function readClaim([
  alive,
  paused,
  limitedMs,
  nextInMs,
  drained,
  ids,
  runs,
  jobs,
  reasons,
  stacks,
  progress,
]: RawClaim): ClaimReply {
  const reply: ClaimReply = {
    jobs: ids.map((id, index) =>
      toClaimed(id, jobs[index] ?? '', runs[index] ?? '', {
        reason: reasons?.[index],
        stack: stacks?.[index],
        progress: progress?.[index],
      }),
    ),
    sessionAlive: alive === 1,
    paused: paused === 1,
    drained: drained === 1,
  };
  if (limitedMs > 0) reply.limitedMs = limitedMs;
  if (nextInMs >= 0) reply.nextInMs = nextInMs;
  return reply;
}
