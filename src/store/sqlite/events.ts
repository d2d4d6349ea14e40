// Reads and trims the event log of a queue. event-rows.ts writes it: one row per commit.
import { REPLY_BYTES, withinReply } from '../budget.js';
import type { EventsReply, StoredEvent } from '../contract/index.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import { IMPLIED, type RecordedEvent } from './state/event-rows.js';
import type { QueueState } from './state/queue-state.js';

const ROWS_AT_ONCE = 100;
/** Estimated bytes of an event without its long texts. */
const BARE_BYTES = 100;

export class EventLog {
  readonly #from: Statement<[first: number, body: string]>;
  readonly #bytesFrom: Statement<[number]>;
  readonly #trim: Statement;
  readonly #cut: Statement;

  constructor(db: Database) {
    this.#from = sql(db, 'read-events', 'queue event count');
    this.#bytesFrom = sql(db, 'bytes-of-events', 'queue event count');
    this.#trim = sql(db, 'trim-events', 'queue last');
    this.#cut = sql(db, 'cut-events', 'first body queue before');
  }

  read(queue: QueueState, after: number | undefined, limit: number): EventsReply {
    if (after === undefined) return { events: [], last: queue.lastEvent };
    const events: StoredEvent[] = [];
    let last = Math.min(Math.max(after, queue.firstEvent - 1), queue.lastEvent);
    let left = REPLY_BYTES;
    while (last < queue.lastEvent && events.length < limit) {
      const rows = this.#rowsFrom(queue, last + 1);
      // Another process has trimmed these events since the queue was read.
      if (rows.length === 0) break;
      for (const [first, body] of rows) {
        const recorded = JSON.parse(body) as RecordedEvent[];
        for (let index = Math.max(0, last + 1 - first); index < recorded.length && events.length < limit; index += 1) {
          const event = toEvent(first + index, recorded[index] as RecordedEvent);
          left -= bytesOf(event);
          if (left < 0 && events.length > 0) return { ...replyOf(events, last, after), more: true };
          last = event.id;
          events.push(event);
        }
      }
    }
    return replyOf(events, last, after);
  }

  /** Deletes all but the newest `keep` events. Returns how many events it deleted. */
  trim(queue: QueueState, keep: number): number {
    // Events of the running transaction are not in a row yet. They are among the newest.
    const first = Math.min(queue.lastEvent + 1, queue.lastEvent + queue.events.length - keep + 1);
    const went = first - queue.firstEvent;
    if (went <= 0) return 0;
    this.#trim.run(queue.queue, first - 1);
    const [row] = this.#rowsFrom(queue, first);
    if (row !== undefined && row[0] < first) {
      const kept = (JSON.parse(row[1]) as RecordedEvent[]).slice(first - row[0]);
      this.#cut.run(first, JSON.stringify(kept), queue.queue, row[0]);
    }
    queue.firstEvent = first;
    queue.changed = true;
    return went;
  }

  /** Returns as many rows as fit into a reply. SQLite knows the bytes of a row without reading it. */
  #rowsFrom({ queue }: QueueState, event: number): [first: number, body: string][] {
    const sizes = this.#bytesFrom.all(queue, event, ROWS_AT_ONCE);
    return this.#from.all(queue, event, withinReply(sizes, ([bytes]) => bytes).length);
  }
}

/** Builds the reply. Event ids have no gaps, so the first id shows how many events were trimmed before it (`missed`). */
function replyOf(events: StoredEvent[], last: number, after: number): EventsReply {
  const missed = (events[0]?.id ?? last + 1) - after - 1;
  return missed > 0 ? { events, last, missed } : { events, last };
}

function toEvent(id: number, [name, jobId, fields]: RecordedEvent): StoredEvent {
  const event: StoredEvent = jobId === undefined || jobId === null ? { id, name } : { id, name, jobId };
  Object.assign(event, IMPLIED.get(name), fields);
  if (event.large === 1) delete event['returnvalue'];
  return event;
}

function bytesOf(event: StoredEvent): number {
  let bytes = BARE_BYTES;
  for (const value of Object.values(event)) if (typeof value === 'string') bytes += value.length;
  return bytes;
}
