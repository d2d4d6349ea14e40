// Keeps the newest events of a queue in a ring of columns. Recording an event costs four stores and no new object, because most
// events share constant fields. Event objects are built only when a reader asks for them.
import { EVENTS_BYTES_KEPT, SHORT_VALUE_BYTES, withinReply } from '../budget.js';
import { EVENTS_KEPT, type EventsReply, type StoredEvent } from '../contract/index.js';

export type EventFields = Readonly<Record<string, string | number>>;

/** Estimated bytes of an event without its long texts. */
const BARE_BYTES = 100;

export class EventLog {
  /**
   * Id of the newest event; 0 before the first. It keeps counting when the queue is forgotten, because listeners continue reading
   * from it.
   */
  last = 0;
  #trimmed = 0;
  /** The id up to which events have no long values any more. */
  #lightened = 0;
  /** Estimated bytes of all events in the ring. */
  #bytes = 0;
  readonly #names: string[] = [];
  readonly #jobIds: (string | undefined)[] = [];
  readonly #fields: (EventFields | undefined)[] = [];
  readonly #sizes: number[] = [];

  /** Records an event. `text` is the total length of the values in `fields` that can be long. */
  record(name: string, jobId?: string, fields?: EventFields, text = 0): void {
    const slot = this.last % EVENTS_KEPT;
    const size = BARE_BYTES + text;
    if (this.last - this.#trimmed >= EVENTS_KEPT) this.#drop(this.last - EVENTS_KEPT + 1);
    this.#names[slot] = name;
    this.#jobIds[slot] = jobId;
    this.#fields[slot] = fields;
    this.#sizes[slot] = size;
    this.#bytes += size;
    this.last++;
    if (this.#bytes > EVENTS_BYTES_KEPT) this.#cut();
  }

  read(after: number | undefined, limit: number): EventsReply {
    if (after === undefined) return { events: [], last: this.last };
    const first = Math.max(after, this.#trimmed) + 1;
    const ids = Array.from({ length: Math.max(0, Math.min(limit, this.last - first + 1)) }, (_, n) => first + n);
    const events = withinReply(ids, (id) => this.#sizes[slotOf(id)] ?? 0).map((id) => this.#event(id));
    const reply: EventsReply = { events, last: Math.min(events.at(-1)?.id ?? Math.max(after, this.#trimmed), this.last) };
    if (events.length < ids.length) reply.more = true;
    if (after < this.#trimmed) reply.missed = this.#trimmed - after;
    return reply;
  }

  /** Drops all but the newest `keep` events. Returns how many events it dropped. */
  trim(keep: number): number {
    const before = this.#trimmed;
    while (this.last - this.#trimmed > keep) this.#drop(this.#trimmed + 1);
    return this.#trimmed - before;
  }

  /**
   * Cuts the log to its byte budget: first the long values of the oldest events, then the oldest events. The newest event stays
   * unchanged.
   */
  #cut(): void {
    for (let id = Math.max(this.#lightened, this.#trimmed) + 1; id < this.last && this.#bytes > EVENTS_BYTES_KEPT; id += 1) {
      this.#lighten(slotOf(id));
      this.#lightened = id;
    }
    while (this.#bytes > EVENTS_BYTES_KEPT && this.last - this.#trimmed > 1) this.#drop(this.#trimmed + 1);
  }

  #lighten(slot: number): void {
    const { returnvalue, data, ...fields } = this.#fields[slot] ?? {};
    const text = String(returnvalue ?? data ?? '').length;
    if (text <= SHORT_VALUE_BYTES) return;
    this.#fields[slot] = { ...fields, large: 1 };
    this.#sizes[slot] = (this.#sizes[slot] ?? 0) - text;
    this.#bytes -= text;
  }

  /** Drops the oldest event in the ring, whose id is `id`. */
  #drop(id: number): void {
    const slot = slotOf(id);
    this.#bytes -= this.#sizes[slot] ?? 0;
    this.#jobIds[slot] = undefined;
    this.#fields[slot] = undefined;
    this.#trimmed = id;
  }

  #event(id: number): StoredEvent {
    const slot = slotOf(id);
    const jobId = this.#jobIds[slot];
    const event: StoredEvent = { id, name: this.#names[slot] ?? '' };
    if (jobId !== undefined) event.jobId = jobId;
    return Object.assign(event, this.#fields[slot]);
  }
}

function slotOf(id: number): number {
  return (id - 1) % EVENTS_KEPT;
}
