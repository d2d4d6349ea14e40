// Adds jobs: writes the arguments of lua/add.lua and reads its reply. The store calls it for every add.
import { type Deduplication, entryMs } from '../../job/deduplication.js';
import type { NewJob } from '../../job/record.js';
import type { AddReply, Call } from '../contract/index.js';
import type { Argument } from './driver/driver.js';
import { isBare, marksOf } from '../marks.js';
import { extraText, freeText, jobText } from './record.js';
import type { Engine } from './driver/engine.js';
import type { Routes } from './state/relays.js';

export async function add(engine: Engine, queue: string, jobs: NewJob[], { caller, seq }: Call): Promise<AddReply[]> {
  engine.registry.ensure(queue);
  const args: Argument[] = [caller, seq, jobs.length];
  // Most calls need only the texts. Two arguments less for each job save measurable time in the client and in Redis.
  if (jobs.every(isBare)) for (const job of jobs) args.push(jobText(job));
  else {
    const anyMarked = jobs.some(isMarkedJob);
    for (const job of jobs) {
      args.push(job.id ?? '', flagsOf(job), jobText(job));
      if (anyMarked) args.push(extraText(job), modeOf(job.deduplication));
    }
  }
  const sent = engine.run('add', queue, args);
  engine.wake.sent(queue);
  return readAdded(engine, queue, String(await sent));
}

/** A job that was triggered has no mark, but a schedule in its extras. */
function isMarkedJob(job: NewJob): boolean {
  return marksOf(job) !== 0 || job.triggeredBy !== undefined;
}

/** Returns the flags of lua/add.lua; '' for a job without priority, delay, lifo, lock key and group. */
export function flagsOf({ priority, delayMs, lifo, lockKey, group }: NewJob): string {
  if (priority === 0 && delayMs === 0 && !lifo && lockKey === undefined && group === undefined) return '';
  const key = group !== undefined ? `;${freeText(group)}` : lockKey === undefined ? '' : `,${lockKey}`;
  return `${priority},${delayMs},${lifo ? 1 : 0}${key}`;
}

/** Returns the mode of lua/add.lua; '' for a job without deduplication. */
function modeOf(mode: Deduplication | undefined): string {
  if (mode === undefined) return '';
  const { id, extend, replaceDelayed, keepLastIfActive } = mode;
  return [entryMs(mode) ?? '', ...[extend, replaceDelayed, keepLastIfActive].map((flag) => (flag === true ? 1 : 0)), id].join(
    ',',
  );
}

const STATUSES: Record<string, AddReply['status']> = {
  n: 'added',
  d: 'duplicate',
  u: 'deduplicated',
  p: 'noParent',
  q: 'otherParent',
  r: 'refused',
};
/** Stands before the name of a queue that got messages. */
const SENT_TO = 'o';

/**
 * Reads a reply: first,count if all ids were counted up, as in most calls; else a letter and the id of each job.
 * `routes`: of an add that waits for its messages.
 */
export function readAdded(engine: Engine, queue: string, reply: string, routes?: Routes): AddReply[] | Promise<AddReply[]> {
  if (isDigit(reply)) {
    const comma = reply.indexOf(',');
    const first = Number(reply.slice(0, comma));
    const count = Number(reply.slice(comma + 1));
    const replies: AddReply[] = [];
    for (let n = 0; n < count; n += 1) replies.push({ id: String(first + n), status: 'added' });
    return replies;
  }
  const items = reply.split('\0');
  const sentTo = items.filter((item) => item.startsWith(SENT_TO)).map((item) => item.slice(1));
  const added = items.filter((item) => !item.startsWith(SENT_TO));
  const replies = added.map((item): AddReply => ({ id: item.slice(1), status: STATUSES[item.charAt(0)] ?? 'added' }));
  if (sentTo.length === 0) return replies;
  const delivery = routes === undefined ? engine.relays.after(queue, sentTo) : engine.relays.afterAdd(routes);
  return delivery.then(() => replies);
}

function isDigit(text: string): boolean {
  const code = text.charCodeAt(0);
  return code >= 48 && code <= 57;
}
