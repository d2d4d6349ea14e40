// Reads and trims the log of a queue. Reading folds the journal first (fold), so that event ids follow the order of commits.
import { REPLY_BYTES } from '../budget.js';
import type { EventName, EventsReply, StoredEvent } from '../contract/index.js';
import type { Engine } from './driver/engine.js';

/** Null in an array: this event has no such field. */
type Fields = Record<string, string | number | (string | number | null)[]>;
type Group = [name: string, ids: string[] | null, fields: Fields | null];

interface Reply {
  from: number;
  last: number;
  rows: [first: number, groups: Group[]][];
}

/** Fields that these events always have, and that their rows therefore omit. */
const IMPLIED: Partial<Record<string, Record<string, string>>> = {
  active: { prev: 'waiting' },
  completed: { prev: 'active' },
  failed: { prev: 'active' },
} satisfies Partial<Record<EventName, Record<string, string>>>;

export async function events({ server }: Engine, queue: string, after: number | undefined, limit: number): Promise<EventsReply> {
  const reply = await server.call<Reply>('events_after', { name: queue, after, limit, budget: REPLY_BYTES });
  const found: StoredEvent[] = [];
  for (const [first, groups] of reply.rows) {
    let id = first;
    for (const [name, ids, fields] of groups) {
      for (let index = 0; index < (ids?.length ?? 1); index += 1, id += 1) {
        if (id > reply.from && found.length < limit) found.push(eventOf(id, name, ids?.[index], fields, index));
      }
    }
  }
  const last = found.at(-1)?.id ?? reply.from;
  const isCut = after !== undefined && found.length < limit && last < reply.last;
  const missed = after === undefined ? 0 : reply.from - after;
  return { events: found, last, ...(isCut && { more: true }), ...(missed > 0 && { missed }) };
}

function eventOf(id: number, name: string, jobId: string | undefined, fields: Fields | null, index: number): StoredEvent {
  const event: StoredEvent = jobId === undefined ? { id, name } : { id, name, jobId };
  Object.assign(event, IMPLIED[name]);
  for (const [field, values] of Object.entries(fields ?? {})) {
    const value = Array.isArray(values) ? values[index] : values;
    if (value !== null) event[field] = value;
  }
  return event;
}
