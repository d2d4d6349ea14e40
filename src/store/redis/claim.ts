// Claims jobs: writes the claim request of lua/settle.lua and reads the claimed jobs. The store and settle.ts call it.
import { tokenOf } from '../../job/lock.js';
import { type ClaimedJob, hasStalled } from '../../job/record.js';
import type { ClaimReply, ClaimRequest } from '../contract/index.js';
import type { Argument } from './driver/driver.js';
import { addSides, fieldsOf, freeText, JOB_FIELDS } from './record.js';
import type { Runner } from './driver/runner.js';
import { readSchedule } from './schedule.js';
import type { Engine } from './driver/engine.js';

type Column = (string | null)[];
/** The reply of lua/claim.lua; only the head if no job was claimed. */
export type RawClaim = [
  head: string,
  granted?: string,
  jobs?: string | string[],
  reasons?: Column | null,
  stacks?: Column | null,
  progress?: Column | null,
  extras?: Column | null,
  debts?: Column,
];

const TEXTS_OF_GRANT = 3;

export async function claim({ run }: Engine, queue: string, request: ClaimRequest): Promise<ClaimReply> {
  const args: Argument[] = ['', '', '', 1];
  writeClaim(args, request);
  args.push(0);
  if (request.jobIds !== undefined) for (const id of request.jobIds) args.push(id);
  const reply = readClaim((await run('settle', queue, args)) as [string, ...RawClaim], request);
  if (reply.jobs.some(hasStalled)) await fillLosses(run, queue, reply.jobs);
  return reply;
}

/** Writes a claim request without its job ids, which are the last arguments of the call. */
export function writeClaim(args: Argument[], { session, seq, lane, count, by, timedMs, limit, jobIds }: ClaimRequest): void {
  const isPlain = timedMs === undefined && limit === undefined && jobIds === undefined;
  const special = isPlain ? '' : `${timedMs ?? ''},${limit?.max ?? ''},${limit?.durationMs ?? ''},${jobIds?.length ?? ''}`;
  args.push(session, seq, laneText(lane), count, by === undefined ? '' : `=${freeText(by)}`, special);
}

/** Returns the suffix of a lane's field names. Lane 0 has none, because its fields have the names from before lanes existed. */
export function laneText(lane: number | undefined): string {
  return lane === undefined || lane === 0 ? '' : String(lane);
}

/** Reads the claim part of a reply of lua/settle.lua. */
export function readClaim(reply: [results: string, ...RawClaim], request: ClaimRequest): ClaimReply {
  const head = reply[1];
  const granted = reply[2];
  const texts = reply[3];
  const jobs = granted === undefined || texts === undefined ? [] : readJobs(granted, texts, reply, request);
  // Fast path: the head that a busy queue returns.
  if (head === '1,0,0,-1,0') return { jobs, sessionAlive: true, paused: false, drained: false };
  const [alive, paused, limitedMs, nextInMs, drained, more, undone] = head.split(',');
  const claimed: ClaimReply = { jobs, sessionAlive: alive === '1', paused: paused === '1', drained: drained === '1' };
  if (limitedMs !== '0') claimed.limitedMs = Number(limitedMs);
  if (nextInMs !== '-1') claimed.nextInMs = Number(nextInMs);
  if (more === '1') claimed.more = true;
  if (undone === '1') claimed.undone = true;
  return claimed;
}

function readJobs(
  granted: string,
  texts: string | string[],
  reply: [results: string, ...RawClaim],
  request: ClaimRequest,
): ClaimedJob[] {
  const { session, by } = request;
  const grants = granted.split('\0');
  // If the texts are joined, this mark stands before the first field of each job except the first.
  const mark = `${grants[1]},`;
  const together = typeof texts === 'string' ? fieldsOfAll(texts, mark) : [];
  const reasons = reply[4];
  const stacks = reply[5];
  const progress = reply[6];
  const extras = reply[7];
  const jobs: ClaimedJob[] = [];
  let text: string | undefined;
  let numbers = numbersIn('');
  for (let at = 0, index = 0; at < grants.length; at += TEXTS_OF_GRANT, index += 1) {
    // Most jobs of a claim have the same numbers, so parse these only if they change.
    if (grants[at + 2] !== text) {
      text = grants[at + 2] ?? '';
      numbers = numbersIn(text);
    }
    const own = typeof texts === 'string' ? together : fieldsOf(texts[index] ?? '');
    const from = typeof texts === 'string' ? JOB_FIELDS * index : 0;
    const timestamp = own[from] ?? '';
    const fence = Number(grants[at + 1]);
    const job: ClaimedJob = {
      id: grants[at] ?? '',
      name: own[from + 1] ?? '',
      data: own[from + 3] ?? '',
      opts: own[from + 2] ?? '',
      state: 'active',
      priority: numbers.priority,
      delay: 0,
      timestamp: Number(from === 0 ? timestamp : timestamp.slice(mark.length)),
      attemptsMade: numbers.made,
      attemptsStarted: numbers.started,
      stalledCounter: numbers.stalls,
      processedOn: numbers.processed,
      token: tokenOf(session, fence),
      fence,
    };
    if (by !== undefined) job.processedBy = freeText(by);
    if ((reasons !== undefined && reasons !== null) || (extras !== undefined && extras !== null))
      addSides(job, { reason: reasons?.[index], stack: stacks?.[index], progress: progress?.[index], extra: extras?.[index] });
    jobs.push(job);
  }
  if (reply[8] !== undefined) fillDebts(jobs, reply[8]);
  return jobs;
}

interface Numbers {
  made: number;
  started: number;
  priority: number;
  stalls: number;
  processed: number;
}

/** Reads what `numbersOf` of lua/jobs.lua writes. */
function numbersIn(text: string): Numbers {
  const [made, started, priority, stalls, , processed] = text.split(',');
  return {
    made: Number(made),
    started: Number(started),
    priority: Number(priority),
    stalls: Number(stalls),
    processed: Number(processed),
  };
}

/** Adds the schedules that the claim made owing. */
function fillDebts(jobs: ClaimedJob[], debts: Column): void {
  jobs.forEach((job, index) => {
    const debt = debts[index];
    if (typeof debt !== 'string') return;
    const comma = debt.indexOf(',');
    job.debt = { ...readSchedule(job.scheduleId ?? '', debt.slice(comma + 1)), now: Number(debt.slice(0, comma)) };
  });
}

/** Returns the fields of all jobs in one list. If a mark is missing, some text is damaged, and each text is split by itself. */
function fieldsOfAll(texts: string, mark: string): string[] {
  const fields = texts.split('\0');
  for (let at = JOB_FIELDS; at < fields.length; at += JOB_FIELDS) {
    if (fields[at]?.startsWith(mark) !== true) return fieldsOfEach(texts, mark);
  }
  return fields.length % JOB_FIELDS === 0 ? fields : fieldsOfEach(texts, mark);
}

function fieldsOfEach(texts: string, mark: string): string[] {
  return texts.split(`\0${mark}`).flatMap((text, index) => {
    const [timestamp = '', ...others] = fieldsOf(text);
    return [index === 0 ? timestamp : mark + timestamp, ...others];
  });
}

/**
 * Reads which owner lost a claimed job before. Few jobs have such an owner, so a claim does not return it: a second call reads it, only for
 * jobs that may have stalled.
 */
export async function fillLosses(run: Runner, queue: string, jobs: ClaimedJob[]): Promise<void> {
  const stalled = jobs.filter(hasStalled);
  const losses = (await run(
    'losses',
    queue,
    stalled.map(({ id }) => id),
  )) as (string | null)[];
  stalled.forEach((job, index) => {
    const lostBy = losses[index];
    if (typeof lostBy === 'string') job.lostBy = lostBy;
  });
}
