import { tokenOf } from '../../job/lock.js';
import type { ClaimedJob } from '../../job/record.js';
import type { ClaimReply, ClaimRequest } from '../contract.js';
import type { Argument } from './driver.js';
import { addSides, freeText } from './job-text.js';
import type { Runner } from './runner.js';

type Column = (string | null)[];
/** As lua/shared/claim.lua answers; the head alone when nothing was claimed. */
export type RawClaim = [
  head: string,
  granted?: string,
  jobs?: string | string[],
  reasons?: Column,
  stacks?: Column,
  progress?: Column,
];

const TEXTS_OF_GRANT = 3;
const TEXTS_OF_JOB = 4;

export async function claim(run: Runner, queue: string, request: ClaimRequest): Promise<ClaimReply> {
  const args = claimArguments(request);
  return readClaim((await run('claim', queue, request.jobIds ? args.concat(request.jobIds) : args)) as RawClaim, request);
}

/** All but the ids, which come at the end of all arguments. */
export function claimArguments({ session, seq, lane, count, by, timedMs, limit, jobIds }: ClaimRequest): Argument[] {
  const isPlain = timedMs === undefined && limit === undefined && jobIds === undefined;
  const special = isPlain ? '' : `${timedMs ?? ''},${limit?.max ?? ''},${limit?.durationMs ?? ''},${jobIds?.length ?? ''}`;
  return [session, seq, laneText(lane), count, by === undefined ? '' : `=${freeText(by)}`, special];
}

/** What the names of its fields end in: those of lane 0 are called as they were before there were lanes. */
export function laneText(lane: number | undefined): string {
  return lane === undefined || lane === 0 ? '' : String(lane);
}

export function readClaim([head, granted, texts, ...sides]: RawClaim, request: ClaimRequest): ClaimReply {
  const [alive, paused, limitedMs, nextInMs, drained] = head.split(',');
  const reply: ClaimReply = {
    jobs: granted === undefined || texts === undefined ? [] : readJobs(granted, texts, sides, request),
    sessionAlive: alive === '1',
    paused: paused === '1',
    drained: drained === '1',
  };
  if (limitedMs !== '0') reply.limitedMs = Number(limitedMs);
  if (nextInMs !== '-1') reply.nextInMs = Number(nextInMs);
  return reply;
}

function readJobs(granted: string, texts: string | string[], sides: (Column | undefined)[], request: ClaimRequest): ClaimedJob[] {
  const { session, by } = request;
  const grants = granted.split('\0');
  const together = typeof texts === 'string' ? texts.split('\0') : [];
  const [reasons, stacks, progress] = sides;
  const jobs: ClaimedJob[] = [];
  let numbers: string | undefined;
  let [made, started, priority, stalls, processed] = [0, 0, 0, 0, 0];
  for (let at = 0, index = 0; at < grants.length; at += TEXTS_OF_GRANT, index += 1) {
    // Mostly the same for all of them.
    if (grants[at + 2] !== numbers) {
      numbers = grants[at + 2] ?? '';
      [made = 0, started = 0, priority = 0, stalls = 0, , processed = 0] = numbers.split(',').map(Number);
    }
    const own = typeof texts === 'string' ? together : (texts[index] ?? '').split('\0');
    const from = typeof texts === 'string' ? TEXTS_OF_JOB * index : 0;
    const fence = Number(grants[at + 1]);
    const job: ClaimedJob = {
      id: grants[at] ?? '',
      name: own[from + 1] ?? '',
      data: own[from + 3] ?? '',
      opts: own[from + 2] ?? '',
      state: 'active',
      priority,
      delay: 0,
      timestamp: Number(own[from]),
      attemptsMade: made,
      attemptsStarted: started,
      stalledCounter: stalls,
      processedOn: processed,
      token: tokenOf(session, fence),
      fence,
    };
    if (by !== undefined) job.processedBy = freeText(by);
    addSides(job, { reason: reasons?.[index], stack: stacks?.[index], progress: progress?.[index] });
    jobs.push(job);
  }
  return jobs;
}
