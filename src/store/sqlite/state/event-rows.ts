// Writes the events of a queue: one row of `events` per commit, or several if they are large. Trims the log by number and by bytes.
import { EVENTS_BYTES_KEPT, SHORT_VALUE_BYTES } from '../../budget.js';
import { EVENTS_KEPT, type EventName } from '../../contract/index.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';

export type EventFields = Readonly<Record<string, string | number>>;

/** The value of a job whose processor returns nothing. */
export const NO_VALUE = 'null';

/** Fields of an event whose value is too large for the log and stays with its job. */
export const LARGE_VALUE: EventFields = { large: 1 };

/** An event as it is written. It is short, because every job leaves several events. */
export type RecordedEvent = [name: string, jobId?: string | null, fields?: EventFields];

/** Fields that these events have unless their rows say otherwise. */
export const IMPLIED: ReadonlyMap<string, EventFields> = new Map<EventName, EventFields>([
  ['active', { prev: 'waiting' }],
  ['completed', { prev: 'active', returnvalue: NO_VALUE }],
  ['failed', { prev: 'active' }],
]);

/** The log may exceed `EVENTS_KEPT` by this many events, so that trimming is rare. */
const TRIM_EVERY = 1000;
/** The same for `EVENTS_BYTES_KEPT`, in bytes that each process writes. */
const TRIM_EVERY_BYTES = 1024 * 1024;
/** Events beyond this many characters go into another row, because a reader parses whole rows. */
const ROW_BYTES = 1024 * 1024;
/** If a row has at most this many bytes per event, its events have no long values. */
const LIGHT_BYTES = 2 * SHORT_VALUE_BYTES;
/** Bytes that one trim may delete: the transaction must stay short. */
const TRIMMED_BYTES_AT_ONCE = 16 * 1024 * 1024;

/** The part of a queue's row that its log needs. */
interface Logged {
  readonly queue: number;
  /** The events of this commit. */
  readonly events: RecordedEvent[];
  firstEvent: number;
  lastEvent: number;
}

export class EventRows {
  readonly #write: Statement;
  readonly #trim: Statement;
  readonly #firstEvent: Statement<[number | null]>;
  readonly #eventBytes: Statement<[first: number, last: number, bytes: number]>;
  readonly #body: Statement<[string]>;
  readonly #rewrite: Statement;
  /** By queue: bytes that this process has written since it last measured the log. */
  readonly #untrimmedBytes = new Map<number, number>();

  constructor(db: Database) {
    this.#write = sql(db, 'write-events', 'queue first last body');
    this.#trim = sql(db, 'trim-events', 'queue last');
    this.#firstEvent = sql(db, 'first-event', 'queue');
    this.#eventBytes = sql(db, 'list-event-bytes', 'queue');
    this.#body = sql(db, 'read-event-row', 'queue first');
    this.#rewrite = sql(db, 'rewrite-event-row', 'body queue first');
  }

  /** Writes the events of a commit, and trims the log. */
  write(state: Logged): void {
    const { queue, events } = state;
    const before = state.lastEvent;
    let bytes = 0;
    for (const body of bodiesOf(events)) {
      const first = state.lastEvent + 1;
      state.lastEvent += body.count;
      this.#write.run(queue, first, state.lastEvent, body.text);
      bytes += body.text.length;
    }
    events.length = 0;
    this.#trimBytes(state, bytes);
    // Checked once per TRIM_EVERY events. A row with thousands of old events is deleted as a whole, and until then there is nothing
    // to trim.
    if (Math.floor(state.lastEvent / TRIM_EVERY) === Math.floor(before / TRIM_EVERY)) return;
    if (state.lastEvent - state.firstEvent < EVENTS_KEPT + TRIM_EVERY) return;
    this.#trimTo(state, state.lastEvent - EVENTS_KEPT);
  }

  /**
   * Trims the log by bytes: first the long values of old events, then old events. The file stores no byte count, which
   * each commit would have to write. So each process measures the log after TRIM_EVERY_BYTES of its own.
   */
  #trimBytes(state: Logged, written: number): void {
    const { queue } = state;
    const untrimmed = (this.#untrimmedBytes.get(queue) ?? 0) + written;
    this.#untrimmedBytes.set(queue, untrimmed < TRIM_EVERY_BYTES ? untrimmed : 0);
    if (untrimmed < TRIM_EVERY_BYTES) return;
    const rows = this.#eventBytes.all(queue);
    // The newest row stays unchanged.
    rows.pop();
    let excess = rows.reduce((sum, [, , bytes]) => sum + bytes, 0) - EVENTS_BYTES_KEPT;
    let left = TRIMMED_BYTES_AT_ONCE;
    for (const row of rows) {
      const [first, last, bytes] = row;
      if (excess <= 0 || left <= 0) break;
      if (bytes <= (last - first + 1) * LIGHT_BYTES) continue;
      left -= bytes;
      row[2] = this.#lighten(queue, first);
      excess -= bytes - row[2];
    }
    let trimmed: number | undefined;
    for (const [, last, bytes] of rows) {
      if (excess <= 0 || left <= 0) break;
      excess -= bytes;
      left -= bytes;
      trimmed = last;
    }
    if (trimmed !== undefined) this.#trimTo(state, trimmed);
  }

  /** Removes the long values from a row of events. Returns how many bytes the row has left. */
  #lighten(queue: number, first: number): number {
    const events = JSON.parse(this.#body.get(queue, first)?.[0] ?? '[]') as RecordedEvent[];
    const light = events.map((event): RecordedEvent => {
      const [name, jobId, fields] = event;
      const text = String(fields?.['returnvalue'] ?? fields?.['data'] ?? '');
      return text.length > SHORT_VALUE_BYTES ? [name, jobId ?? null, LARGE_VALUE] : event;
    });
    const body = JSON.stringify(light);
    this.#rewrite.run(body, queue, first);
    return Buffer.byteLength(body);
  }

  #trimTo(state: Logged, last: number): void {
    this.#trim.run(state.queue, last);
    state.firstEvent = this.#firstEvent.get(state.queue)?.[0] ?? state.lastEvent + 1;
  }
}

interface Body {
  text: string;
  count: number;
}

/** Encodes the events as one row, or as several if they are large. */
function bodiesOf(events: RecordedEvent[]): Body[] {
  const text = JSON.stringify(events);
  if (text.length <= ROW_BYTES || events.length === 1) return [{ text, count: events.length }];
  const bodies: Body[] = [];
  let parts: string[] = [];
  let bytes = 0;
  const endRow = (): void => {
    if (parts.length > 0) bodies.push({ text: `[${parts.join()}]`, count: parts.length });
    parts = [];
    bytes = 0;
  };
  for (const event of events) {
    const part = JSON.stringify(event);
    if (bytes + part.length > ROW_BYTES) endRow();
    bytes += part.length;
    parts.push(part);
  }
  endRow();
  return bodies;
}
