// The newest events of a queue in a ring of columns: telling one costs three stores and no object of its own
// (the fields of most events are shared constants), and events are put together only when somebody reads them.
import { EVENTS_KEPT, type EventName, type EventsReply, type StoredEvent } from '../contract.js';

export type EventFields = Readonly<Record<string, string | number>>;

export class EventLog {
  /** Id of the newest event; 0 before the first. It goes on counting when the queue is forgotten: listeners read on from it. */
  last = 0;
  #trimmed = 0;
  readonly #names: EventName[] = [];
  readonly #jobIds: (string | undefined)[] = [];
  readonly #fields: (EventFields | undefined)[] = [];

  tell(name: EventName, jobId?: string, fields?: EventFields): void {
    const slot = this.last % EVENTS_KEPT;
    this.#names[slot] = name;
    this.#jobIds[slot] = jobId;
    this.#fields[slot] = fields;
    this.last++;
  }

  read(after: number | undefined, limit: number): EventsReply {
    const events: StoredEvent[] = [];
    if (after === undefined) return { events, last: this.last };
    let id = Math.max(after, this.#gone());
    while (id < this.last && events.length < limit) events.push(this.#event(++id));
    return { events, last: Math.min(id, this.last) };
  }

  /** Answers how many went. */
  trim(keep: number): number {
    const gone = this.#gone();
    this.#trimmed = Math.max(gone, this.last - keep);
    for (let id = gone + 1; id <= this.#trimmed; id++) {
      this.#jobIds[(id - 1) % EVENTS_KEPT] = undefined;
      this.#fields[(id - 1) % EVENTS_KEPT] = undefined;
    }
    return this.#trimmed - gone;
  }

  /** Id of the newest event that is no longer kept. */
  #gone(): number {
    return Math.max(this.#trimmed, this.last - EVENTS_KEPT);
  }

  #event(id: number): StoredEvent {
    const slot = (id - 1) % EVENTS_KEPT;
    const jobId = this.#jobIds[slot];
    const event: StoredEvent = { id, name: this.#names[slot] as EventName };
    if (jobId !== undefined) event.jobId = jobId;
    return Object.assign(event, this.#fields[slot]);
  }
}
