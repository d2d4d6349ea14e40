// Schedules: writes the changes of `schedule` in lua/schedules.lua, and reads schedules (lua/schedules.lua). The store, status and claims
// call it.
import type { ScheduleRecord } from '../../job/schedule-record.js';
import type { ScheduleChange, ScheduleQuery, ScheduleReply, SchedulesFound, Slot } from '../contract/index.js';
import { flagsOf } from './add.js';
import type { Argument } from './driver/driver.js';
import type { Runner } from './driver/runner.js';
import type { Engine } from './driver/engine.js';
import { extraText, jobText } from './record.js';

/** Changes that one script makes: this takes Redis about 3 ms. */
const CHANGES_AT_ONCE = 100;

const KINDS: Record<ScheduleChange['kind'], string> = { put: 'u', advance: 'a', pause: 'p', remove: 'r' };
const STATUSES: Record<string, ScheduleReply['status']> = { d: 'done', s: 'stale', m: 'missing', t: 'taken' };
const STATES: Record<string, ScheduleRecord['state']> = { r: 'running', o: 'owing', p: 'paused', e: 'ended' };

export async function schedule(
  { run, relays, registry }: Engine,
  queue: string,
  changes: ScheduleChange[],
): Promise<ScheduleReply[]> {
  registry.ensure(queue);
  const replies: ScheduleReply[] = [];
  for (let first = 0; first < changes.length; first += CHANGES_AT_ONCE) {
    const part = changes.slice(first, first + CHANGES_AT_ONCE);
    const texts = (await run('schedule', queue, part.flatMap(argumentsOf))) as string[];
    // The names of queues follow that got messages.
    if (texts.length > part.length) await relays.after(queue, texts.slice(part.length));
    for (const [index, { id }] of part.entries()) replies.push(readReply(id, texts[index] ?? ''));
  }
  return replies;
}

function argumentsOf(change: ScheduleChange): Argument[] {
  const { kind, id, version } = change;
  const [spec, serial] = kind === 'put' ? [change.spec, change.serial ? 1 : 0] : ['', ''];
  return [KINDS[kind], id, version, spec, serial, ...slotArguments(id, 'next' in change ? change.next : undefined)];
}

function slotArguments(scheduleId: string, slot: Slot | undefined): Argument[] {
  if (slot === undefined) return ['', '', '', '', '', ''];
  const job = { ...slot.job, scheduleId, delayMs: Math.max(0, Math.ceil(slot.dueInMs)) };
  return [slot.at, slot.count, job.id, flagsOf(job), jobText(job), extraText(job)];
}

function readReply(id: string, reply: string): ScheduleReply {
  const status = STATUSES[reply.charAt(0)] as ScheduleReply['status'];
  return reply.length === 1 ? { status } : { status, record: readSchedule(id, reply.slice(1)) };
}

/** Reads a record as lua/schedules.lua stores it. */
export function readSchedule(id: string, text: string): ScheduleRecord {
  const numbersEnd = text.indexOf('\0');
  const nextEnd = text.indexOf('\0', numbersEnd + 1);
  const [version, serial, state = '', at, count] = text.slice(0, numbersEnd).split(',');
  const nextJobId = text.slice(numbersEnd + 1, nextEnd);
  const record: ScheduleRecord = {
    id,
    version: Number(version),
    spec: text.slice(nextEnd + 1),
    serial: serial === '1',
    state: STATES[state] as ScheduleRecord['state'],
    at: Number(at),
    count: Number(count),
  };
  if (nextJobId !== '') record.nextJobId = nextJobId;
  return record;
}

export async function findSchedules(run: Runner, queue: string, query: ScheduleQuery): Promise<SchedulesFound> {
  type Raw = [count: number, now: string, ids: string[], texts: (string | null)[]];
  const [count, now, ids, texts] = (await run('schedules', queue, queryArguments(query))) as Raw;
  const records = ids.flatMap((id, index) => {
    const text = texts[index];
    return typeof text === 'string' ? [readSchedule(id, text)] : [];
  });
  return { records, now: Number(now), ...('count' in query && { count }) };
}

function queryArguments(query: ScheduleQuery): Argument[] {
  if ('ids' in query) return ['i', ...query.ids];
  if ('owing' in query) return ['o', query.limit];
  if ('count' in query) return ['i'];
  return ['p', query.start, query.end, query.asc ? 1 : 0];
}
