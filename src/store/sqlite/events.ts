// Reading and trimming the log of a queue, which is written in queue-state.ts: one row per commit.
import type { EventsReply, StoredEvent } from '../contract.js';
import type { Database, Statement } from './driver.js';
import { IMPLIED, type QueueState, type ToldEvent } from './queue-state.js';

const ROWS_AT_ONCE = 100;

export class EventLog {
  readonly #from: Statement<[first: number, body: string]>;
  readonly #trim: Statement;
  readonly #cut: Statement;

  constructor(db: Database) {
    // The row that holds the next event begins at or before it.
    this.#from = db.prepare(
      `SELECT first, body FROM events
       WHERE queue = ? AND first >= ifnull((SELECT max(first) FROM events WHERE queue = ? AND first <= ?), 0)
       ORDER BY first LIMIT ${ROWS_AT_ONCE}`,
    );
    this.#trim = db.prepare('DELETE FROM events WHERE queue = ? AND first < ? AND last < ?');
    this.#cut = db.prepare('UPDATE events SET first = ?, body = ? WHERE queue = ? AND first = ?');
  }

  read(queue: QueueState, after: number | undefined, limit: number): EventsReply {
    if (after === undefined) return { events: [], last: queue.lastEvent };
    const events: StoredEvent[] = [];
    let last = Math.min(Math.max(after, queue.firstEvent - 1), queue.lastEvent);
    while (last < queue.lastEvent && events.length < limit) {
      const rows = this.#rowsFrom(queue, last + 1);
      // Somebody else has trimmed them since the queue was read.
      if (rows.length === 0) break;
      for (const [first, body] of rows) {
        const told = JSON.parse(body) as ToldEvent[];
        for (let index = Math.max(0, last + 1 - first); index < told.length && events.length < limit; index += 1) {
          last = first + index;
          events.push(toEvent(last, told[index] as ToldEvent));
        }
      }
    }
    return { events, last };
  }

  /** Answers how many went. */
  trim(queue: QueueState, keep: number): number {
    // Those of the running transaction are not in a row yet; they are among the newest.
    const first = Math.min(queue.lastEvent + 1, queue.lastEvent + queue.events.length - keep + 1);
    const went = first - queue.firstEvent;
    if (went <= 0) return 0;
    this.#trim.run(queue.queue, first, first);
    const [row] = this.#rowsFrom(queue, first);
    if (row !== undefined && row[0] < first) {
      const kept = (JSON.parse(row[1]) as ToldEvent[]).slice(first - row[0]);
      this.#cut.run(first, JSON.stringify(kept), queue.queue, row[0]);
    }
    queue.firstEvent = first;
    queue.changed = true;
    return went;
  }

  #rowsFrom({ queue }: QueueState, event: number): [first: number, body: string][] {
    return this.#from.all(queue, queue, event);
  }
}

function toEvent(id: number, [name, jobId, fields]: ToldEvent): StoredEvent {
  const event: StoredEvent = jobId === undefined || jobId === null ? { id, name } : { id, name, jobId };
  return Object.assign(event, IMPLIED[name], fields);
}
