// Read-only views: jobs, lists, counts, logs, locks, sessions. Queues, workers and dashboards call it through the store.
import { tokenOf } from '../../job/lock.js';
import type { JobRecord } from '../../job/record.js';
import { REPLY_BYTES } from '../budget.js';
import type {
  GroupJobsQuery,
  JobsReply,
  ListName,
  ListQuery,
  LockInfo,
  LockQuery,
  LockReply,
  NamedLockInfo,
  OwnedLock,
  Owner,
  SessionInfo,
  Step,
} from '../contract/index.js';
import { type Columns, freeText, toRecords } from './record.js';
import type { Runner } from './driver/runner.js';
import { status } from './state/status.js';
import type { Engine } from './driver/engine.js';

/** The sorted set of each list except the active one. Jobs that wait for their lock key are in a set beside it (`list` in lua/jobs.lua). */
const PLACES: Record<Exclude<ListName, 'active'>, string> = {
  'waiting-children': 'waiting-children',
  waiting: 'wait',
  prioritized: 'prio',
  delayed: 'delayed',
  completed: 'completed',
  failed: 'failed',
};
const LISTED_AT_ONCE = 250;

export function jobs({ run }: Engine, queue: string, query: string[] | ListQuery | GroupJobsQuery): Promise<JobsReply> {
  if (Array.isArray(query)) return byId(run, queue, query);
  return 'group' in query ? listGroup(run, queue, query) : list(run, queue, query);
}

/** Reads the steps of a job in the order in which they were recorded: see `marking` in lua/jobs.lua. */
export async function steps({ run }: Engine, queue: string, jobId: string): Promise<Step[]> {
  const flat = (await run('steps', queue, [jobId])) as string[];
  const numbered: [number: number, step: Step][] = [];
  for (let at = 0; at < flat.length; at += 2) {
    const [field = '', text = ''] = flat.slice(at, at + 2);
    const nul = text.indexOf('\0');
    if (field.startsWith('=')) numbered.push([Number(text.slice(0, nul)), { name: field.slice(1), value: text.slice(nul + 1) }]);
  }
  return numbered.sort(([a], [b]) => a - b).map(([, step]) => step);
}

async function listGroup(run: Runner, queue: string, query: GroupJobsQuery): Promise<JobsReply> {
  const reading: Reading = { jobs: [], left: REPLY_BYTES };
  const whole = await readPlace(run, queue, `members:${freeText(query.group)}`, query, reading);
  return { jobs: reading.jobs, more: !whole };
}

async function byId(run: Runner, queue: string, jobIds: string[]): Promise<JobsReply> {
  const records: (JobRecord | undefined)[] = [];
  for (let first = 0, left = REPLY_BYTES; first < jobIds.length; first += LISTED_AT_ONCE) {
    const part = jobIds.slice(first, first + LISTED_AT_ONCE);
    const [columns, bytes] = (await run('jobs', queue, [left, ...part])) as [Columns, number];
    for (const record of toRecords(columns)) records.push(record);
    if (columns[0].length < part.length) break;
    left -= bytes;
  }
  return { jobs: records, more: records.length < jobIds.length };
}

type Range = Pick<ListQuery, 'start' | 'end' | 'asc'>;

/** The jobs that were read so far, and the byte budget that is left. */
interface Reading {
  jobs: JobRecord[];
  /** Bytes. */
  left: number;
}

function note(reading: Reading, columns: Columns, bytes: number): void {
  for (const record of toRecords(columns)) if (record !== undefined) reading.jobs.push(record);
  reading.left -= bytes;
}

async function list(run: Runner, queue: string, query: ListQuery): Promise<JobsReply> {
  const reading: Reading = { jobs: [], left: REPLY_BYTES };
  for (const name of query.lists) {
    const whole =
      name === 'active'
        ? await readActive(run, queue, query, reading)
        : await readPlace(run, queue, PLACES[name], query, reading);
    if (!whole) return { jobs: reading.jobs, more: true };
  }
  return { jobs: reading.jobs, more: false };
}

/** Reads a list page by page. Returns false if the byte budget cut the list. */
async function readPlace(run: Runner, queue: string, place: string, query: Range, reading: Reading): Promise<boolean> {
  const { start, end, asc } = query;
  for (let next = start; ; ) {
    const args = [place, next, end, asc ? 1 : 0, LISTED_AT_ONCE, reading.left];
    const [following, cut, columns, bytes = 0] = (await run('list', queue, args)) as [number, number, Columns, number?];
    note(reading, columns, bytes);
    if (cut === 1) return false;
    if (following < 0) return true;
    next = following;
  }
}

/**
 * Reads the active list page by page, each page from the last fence on: with positions, every page would count anew over all sessions.
 * Returns false if the byte budget cut the list.
 */
async function readActive(run: Runner, queue: string, { start, end, asc }: ListQuery, reading: Reading): Promise<boolean> {
  const { active } = (await status({ run }, queue)).counts;
  const first = Math.max(0, start < 0 ? active + start : start);
  let left = (end < 0 ? active + end : Math.min(end, active - 1)) - first + 1;
  for (let skip = first, after = ''; left > 0; ) {
    const args = [skip, after, asc ? 1 : 0, Math.min(left, LISTED_AT_ONCE), reading.left];
    const reply = (await run('list-active', queue, args)) as [number, string, number, Columns, number];
    const [skipped, next, cut, columns, bytes] = reply;
    note(reading, columns, bytes);
    if (cut === 1) return false;
    skip -= skipped;
    left -= columns[0].length;
    if (next === '') return true;
    after = next;
  }
  return true;
}

export async function logs(
  { run }: Engine,
  queue: string,
  jobId: string,
  { start, end, asc }: { start: number; end: number; asc: boolean },
): Promise<{ logs: string[]; count: number }> {
  const [count, rows] = (await run('logs', queue, [jobId, start, end, asc ? 1 : 0])) as [number, string[]];
  return { logs: rows, count };
}

export async function locks({ run }: Engine, queue: string, query: LockQuery): Promise<LockReply> {
  if ('session' in query) return owned(run, queue, query.session);
  if ('names' in query) return inParts(query.names, (names) => namedLocks(run, queue, names));
  return inParts(query.jobIds, (ids) => jobLocks(run, queue, ids));
}

async function inParts<I, O>(items: I[], read: (part: I[]) => Promise<O[]>): Promise<O[]> {
  const found: O[] = [];
  for (let first = 0; first < items.length; first += LISTED_AT_ONCE)
    found.push(...(await read(items.slice(first, first + LISTED_AT_ONCE))));
  return found;
}

async function jobLocks(run: Runner, queue: string, jobIds: string[]): Promise<(LockInfo | undefined)[]> {
  type Raw = [session: string, fence: string, since: string, endsInMs: number, ...RawOwner];
  const replies = (await run('job-locks', queue, jobIds)) as (Raw | 0)[];
  return jobIds.map((jobId, index) => {
    const reply = replies[index];
    if (!Array.isArray(reply)) return undefined;
    const [session, text, since, endsInMs, ...owner] = reply;
    const fence = Number(text);
    return { jobId, token: tokenOf(session, fence), fence, session, owner: readOwner(owner), since: Number(since), endsInMs };
  });
}

async function namedLocks(run: Runner, queue: string, names: string[]): Promise<(NamedLockInfo | undefined)[]> {
  type Raw = [token: string, fence: string, session: string, since: string, endsInMs: number, waiting: number, ...RawOwner];
  const replies = (await run('named-locks', queue, names)) as (Raw | 0)[];
  return names.map((name, index) => {
    const reply = replies[index];
    if (!Array.isArray(reply)) return undefined;
    const [token, fence, session, since, endsInMs, waiting, ...owner] = reply;
    return { name, token, fence: Number(fence), session, owner: readOwner(owner), since: Number(since), endsInMs, waiting };
  });
}

/** The owner of a session. A field is null if an older version, which did not write that field, opened the session. */
type RawOwner = [host: string | null, pid: string | null, name: string | null, instance: string | null];

function readOwner([host, pid, name, instance]: RawOwner): Owner {
  return { host: host ?? '', pid: Number(pid), name: name ?? '', instance: instance ?? '' };
}

type RawSession = [
  id: string,
  expiresInMs: number,
  host: string,
  pid: string,
  name: string,
  durationMs: string,
  since: string,
  renewals: string,
  suspected: number,
  locks: number,
  instance: string | null,
  slots: string | null,
];

export async function sessions({ run }: Engine, queue: string): Promise<SessionInfo[]> {
  const replies: RawSession[] = [];
  for (let page: RawSession[] = []; ; ) {
    page = (await run('sessions', queue, [replies.length, LISTED_AT_ONCE])) as RawSession[];
    replies.push(...page);
    if (page.length < LISTED_AT_ONCE) break;
  }
  // A renewal between two pages moves a session to the end of the index, so it may be read twice.
  const unique = new Map(replies.map((reply) => [reply[0], reply]));
  const found = [...unique.values()].map(
    ([id, expiresInMs, host, pid, name, durationMs, since, renewals, suspected, locks, instance, slots]): SessionInfo => ({
      queue,
      id,
      owner: readOwner([host, pid, name, instance]),
      durationMs: Number(durationMs),
      since: Number(since),
      renewals: Number(renewals),
      expiresInMs,
      suspected: suspected === 1,
      slots: Number(slots),
      locks,
    }),
  );
  return found.sort((a, b) => a.since - b.since);
}

async function owned(run: Runner, queue: string, session: string): Promise<OwnedLock[]> {
  const locks: OwnedLock[] = [];
  for (const kind of ['bound', 'ending']) {
    for (let after = ''; ; ) {
      const args = [session, kind, after, LISTED_AT_ONCE];
      const [ids, fences, seqs] = (await run('owned', queue, args)) as [string[], string[], string[]];
      ids.forEach((jobId, index) => {
        const fence = Number(fences[index]);
        locks.push({ jobId, token: tokenOf(session, fence), fence, seq: Number(seqs[index]) });
      });
      if (ids.length < LISTED_AT_ONCE) break;
      after = fences.at(-1) ?? '';
    }
  }
  return locks.sort((a, b) => a.fence - b.fence);
}
