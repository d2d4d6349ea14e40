// Reads the event log of a queue, which `queue` in lua/queues.lua writes: one entry per script, with records of a letter and texts.
import { REPLY_BYTES } from '../budget.js';
import type { EventName, EventsReply, StoredEvent } from '../contract/index.js';
import type { Engine } from './driver/engine.js';

/** An event of a record. Without a name of its own it is an event of a user, whose name is in the record. */
type Template = [name: EventName | '', fixed?: Record<string, string>, ...fields: string[]];
/** A kind of record: the texts that follow its letter, and the events that it stands for. */
interface Kind {
  texts: string[];
  events: Template[];
}

const ACTIVE = { prev: 'active' };
const KINDS: Record<string, Kind> = {
  N: { texts: ['jobId', 'jobName'], events: [['added', {}, 'jobName'], ['waiting']] },
  D: {
    texts: ['jobId', 'jobName', 'delay'],
    events: [
      ['added', {}, 'jobName'],
      ['delayed', {}, 'delay'],
    ],
  },
  M: { texts: ['jobId', 'jobName'], events: [['added', {}, 'jobName'], ['waiting-children']] },
  H: { texts: ['jobId'], events: [['waiting-children', ACTIVE]] },
  U: { texts: ['jobId'], events: [['duplicated']] },
  P: { texts: ['jobId'], events: [['waiting', { prev: 'delayed' }]] },
  W: { texts: ['jobId', 'prev'], events: [['waiting', {}, 'prev']] },
  X: { texts: ['jobId'], events: [['active', { prev: 'waiting' }]] },
  C: { texts: ['jobId', 'returnvalue'], events: [['completed', ACTIVE, 'returnvalue']] },
  F: {
    texts: ['jobId', 'failedReason', 'attemptsMade'],
    events: [
      ['failed', ACTIVE, 'failedReason'],
      ['retries-exhausted', {}, 'attemptsMade'],
    ],
  },
  A: { texts: ['jobId', 'failedReason', 'prev'], events: [['failed', {}, 'failedReason', 'prev']] },
  R: { texts: ['jobId', 'failedReason'], events: [['waiting', ACTIVE, 'failedReason']] },
  L: { texts: ['jobId', 'delay', 'failedReason'], events: [['delayed', {}, 'delay', 'failedReason']] },
  Y: { texts: ['jobId', 'delay'], events: [['delayed', {}, 'delay']] },
  B: { texts: ['jobId'], events: [['waiting', ACTIVE]] },
  S: { texts: ['jobId'], events: [['stalled'], ['waiting', ACTIVE]] },
  Z: { texts: ['jobId', 'failedReason'], events: [['stalled'], ['failed', ACTIVE, 'failedReason']] },
  G: { texts: ['jobId', 'data'], events: [['progress', {}, 'data']] },
  V: { texts: ['jobId', 'prev'], events: [['removed', {}, 'prev']] },
  J: {
    texts: ['jobId', 'deduplicationId', 'deduplicatedJobId'],
    events: [['deduplicated', {}, 'deduplicationId', 'deduplicatedJobId']],
  },
  K: { texts: ['count'], events: [['cleaned', {}, 'count']] },
  O: { texts: [], events: [['paused']] },
  Q: { texts: [], events: [['resumed']] },
  E: { texts: [], events: [['drained']] },
  // An event of a user. It is the last record of its entry.
  T: { texts: ['ownName', 'args'], events: [['', {}, 'args']] },
  // The last record of an entry: LostBy of the jobs that stalled in this entry, in the order of their events.
  I: { texts: ['losses'], events: [] },
};
const NUMBERS = new Set(['delay', 'attemptsMade', 'count']);
const VALUES = new Set(['returnvalue', 'data']);
/** Replaces a value that is too large for an event. Must equal LARGE_VALUE in `clock` in lua/queues.lua. */
const LARGE_VALUE = 'null ';
const ENTRIES_AT_ONCE = 100;

type Entry = [id: string, fields: [string, string]];

export async function events({ run }: Engine, queue: string, after: number | undefined, limit: number): Promise<EventsReply> {
  const found: StoredEvent[] = [];
  let missed: Pick<EventsReply, 'missed'> = {};
  for (let last = after, left = REPLY_BYTES; ; ) {
    const wanted = limit - found.length;
    const reply = (await run('events', queue, [last ?? '', ENTRIES_AT_ONCE, wanted])) as [number, number, Entry[], Entry[]];
    const [newest, firstVisible, entries, values] = reply;
    if (last === undefined) return { events: found, last: newest };
    const position = last;
    last = Math.min(Math.max(last, firstVisible - 1), newest);
    if (entries[0] !== undefined) last = Math.max(last, endOf(entries[0]) - countOf(entries[0]));
    if (found.length === 0 && last > position) missed = { missed: last - position };
    for (const entry of entries) {
      for (const event of readEntry(entry)) {
        if (event.id <= last) continue;
        if (found.length >= limit) return { events: found, last, ...missed };
        if (event.large === 1) addValue(event, entry, values);
        left -= sizeOf(event);
        if (left < 0 && found.length > 0) return { events: found, last, more: true, ...missed };
        found.push(event);
        last = event.id;
      }
      // The last event number of an entry may be unused, so continue after the end of the entry.
      last = Math.max(last, endOf(entry));
    }
    if (entries.length === 0 || last >= newest || found.length >= limit) return { events: found, last, ...missed };
  }
}

function endOf([id]: Entry): number {
  return Number(id.slice(0, id.indexOf('-')));
}

function countOf([id]: Entry): number {
  return Number(id.slice(id.indexOf('-') + 1));
}

/** Adds the large result of a job that was removed when it finished. Such a result is stored beside the log. */
function addValue(event: StoredEvent, entry: Entry, values: Entry[]): void {
  if (event.name !== 'completed') return;
  const found = values.find((value) => value[1][0] === event.jobId && endOf(value) === endOf(entry));
  if (found === undefined) return;
  event['returnvalue'] = found[1][1];
  delete event.large;
}

/** Returns the approximate size of an event in bytes: the length of its value, reason or args. */
function sizeOf(event: StoredEvent): number {
  const value = event['returnvalue'] ?? event['data'] ?? event['failedReason'] ?? event['args'];
  return typeof value === 'string' ? value.length : 0;
}

/** Reads the events of an entry. The entry's id is the number of its last event and the number of its events. */
function readEntry([id, [, body]]: Entry): StoredEvent[] {
  const [last = 0, count = 0] = id.split('-').map(Number);
  const texts = body.split('\0');
  const found: StoredEvent[] = [];
  let number = last - count;
  for (let at = 0; at < texts.length; ) {
    const kind = KINDS[texts[at] as string];
    if (kind === undefined) break;
    const values = Object.fromEntries(kind.texts.map((name, index) => [name, texts[at + 1 + index] ?? '']));
    if (values['losses'] !== undefined) addLosses(found, values['losses']);
    for (const [name, fixed, ...fields] of kind.events) {
      number += 1;
      // The job failed with attempts left: its number stays unused (see lua/settle.lua).
      if (name === 'retries-exhausted' && values['attemptsMade'] === '') continue;
      const event: StoredEvent = { id: number, name: values['ownName'] ?? name, ...fixed };
      if (values['jobId'] !== undefined) event.jobId = values['jobId'];
      for (const field of fields) {
        if (values[field] === LARGE_VALUE && VALUES.has(field)) event.large = 1;
        else event[field] = NUMBERS.has(field) ? Number(values[field]) : values[field];
      }
      found.push(event);
    }
    at += 1 + kind.texts.length;
  }
  return found;
}

function addLosses(events: StoredEvent[], text: string): void {
  const losses = JSON.parse(text) as (object | null)[];
  let loss: object | null = null;
  for (const event of events) {
    const isStall = event.name === 'stalled';
    if (isStall) loss = losses.shift() ?? null;
    // A failure for a stall directly follows that stall.
    if (loss !== null && (isStall || event.name === 'failed')) event['lostBy'] = JSON.stringify(loss);
    if (!isStall) loss = null;
  }
}
