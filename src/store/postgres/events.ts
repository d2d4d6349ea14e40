// Reads and trims the log of a queue. Reading folds the journal first (sql/fold.sql), so that event ids follow the order of commits.
import { journalOf } from './journal-rows.js';
import { REPLY_BYTES } from '../budget.js';
import type { EventName, EventsReply, StoredEvent } from '../contract/index.js';
import type { Server } from './server.js';
import { verb } from './sql-function.js';

export const EVENT_FUNCTIONS =
  verb(
    `events_after(_name text, _after bigint, _limit bigint, _budget bigint DEFAULT ${Number.MAX_SAFE_INTEGER})`,
    'text',
    `
DECLARE
  _row queues;
  _from bigint;
  _rows text;
BEGIN
  SELECT * INTO _row FROM queues WHERE name = _name;
  IF NOT FOUND THEN RETURN '{"from":0,"last":0,"rows":[]}'; END IF;
  IF EXISTS (SELECT FROM ${journalOf('_row')}) THEN
    PERFORM FROM queues WHERE queue = _row.queue FOR NO KEY UPDATE;
    PERFORM fold(_row.queue);
    SELECT * INTO _row FROM queues WHERE queue = _row.queue;
  END IF;
  IF _after IS NULL THEN RETURN json_build_object('from', _row.last_event, 'last', _row.last_event, 'rows', '[]'::json); END IF;
  _from := least(greatest(_after, _row.first_event - 1), _row.last_event);
  -- Ids have no gaps: the rows that hold the next ones are known by their ends.
  SELECT string_agg('[' || first || ',[' || body || ']]', ',') INTO _rows FROM (
    SELECT *, octet_length(body) AS size, sum(octet_length(body)) OVER (ROWS UNBOUNDED PRECEDING) AS upto FROM (
      SELECT first, body FROM events WHERE queue = _row.queue AND first <= _from + _limit
        AND first >= (SELECT coalesce(max(first), 0) FROM events WHERE queue = _row.queue AND first <= _from + 1) ORDER BY first) e
  ) e WHERE upto <= _budget OR upto = size;
  RETURN '{"from":' || _from || ',"last":' || _row.last_event || ',"rows":[' || coalesce(_rows, '') || ']}';
END`,
  ) +
  verb(
    'trim_events(_name text, _keep float8)',
    'text',
    `
DECLARE
  _queue int;
BEGIN
  SELECT queue INTO _queue FROM queues WHERE name = _name FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN 0; END IF;
  PERFORM fold(_queue);
  RETURN trim_log(_queue, _keep);
END`,
  );

/** Null in an array: this event has no such field. */
type Fields = Record<string, string | number | (string | number | null)[]>;
type Group = [name: EventName, ids: string[] | null, fields: Fields | null];

interface Reply {
  from: number;
  last: number;
  rows: [first: number, groups: Group[]][];
}

/** Fields that these events always have, and that their rows therefore omit. */
const IMPLIED: Partial<Record<EventName, Record<string, string>>> = {
  active: { prev: 'waiting' },
  completed: { prev: 'active' },
  failed: { prev: 'active' },
};

export async function events(server: Server, queue: string, after: number | undefined, limit: number): Promise<EventsReply> {
  const reply = await server.call<Reply>('events_after', [queue, after ?? null, limit, REPLY_BYTES]);
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

function eventOf(id: number, name: EventName, jobId: string | undefined, fields: Fields | null, index: number): StoredEvent {
  const event: StoredEvent = jobId === undefined ? { id, name } : { id, name, jobId };
  Object.assign(event, IMPLIED[name]);
  for (const [field, values] of Object.entries(fields ?? {})) {
    const value = Array.isArray(values) ? values[index] : values;
    if (value !== null) event[field] = value;
  }
  return event;
}
