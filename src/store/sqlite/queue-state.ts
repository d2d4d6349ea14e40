// The row of a queue: counters, counts, pause and limits. A transaction reads the row once. Its operations change the row in memory
// and record their events on it. The transaction writes the row once at its end, with all events in one row of `events`.
import { EVENTS_BYTES_KEPT, SHORT_VALUE_BYTES } from '../budget.js';
import { EVENTS_KEPT, type EventName, type QueueStatus } from '../contract/index.js';
import type { FinishedState } from '../../job/state.js';
import type { Database, Statement, Value } from './driver.js';
import type { Lanes } from './lanes.js';

export type EventFields = Readonly<Record<string, string | number>>;

/** The value of a job whose processor returns nothing. */
export const NO_VALUE = 'null';

/** Fields of an event whose value is too large for the log and stays with its job. */
export const LARGE_VALUE: EventFields = { large: 1 };

/** An event as it is written. It is short, because every job leaves several events. */
export type ToldEvent = [name: EventName, jobId?: string | null, fields?: EventFields];

/** Fields that these events have unless their rows say otherwise. */
export const IMPLIED: Partial<Record<EventName, EventFields>> = {
  active: { prev: 'waiting' },
  completed: { prev: 'active', returnvalue: NO_VALUE },
  failed: { prev: 'active' },
};

export class QueueState {
  readonly queue: number;
  readonly name: string;
  readonly events: ToldEvent[] = [];
  changed = false;
  /** The row must be written, but no watcher must wake. */
  quietlyChanged = false;
  /** Keys of jobs that have moved since their key groups were last arranged. */
  readonly touched = new Set<string>();

  /** Grows with every write that watchers must see. Watchers in other processes compare it to find the queue that changed. */
  version = 0;
  touchedAt = 0;
  /** 0 or 1. */
  paused = 0;
  /** The cap; -1 if there is none. */
  maxActive = -1;
  /**
   * 1 once a job with a key was added. Queues without keys skip the queries for keys, which make finishing a job a sixth slower.
   */
  keyed = 0;
  limitedUntil = 0;
  windowEnds = 0;
  windowUsed = 0;
  windowMax = 0;
  /** The last job id that the store generated. */
  lastId = 0;
  front = 0;
  back = 0;
  fence = 0;
  firstEvent = 1;
  lastEvent = 0;
  waiting = 0;
  prioritized = 0;
  delayed = 0;
  active = 0;
  completed = 0;
  failed = 0;

  constructor(queue: number, name: string) {
    this.queue = queue;
    this.name = name;
  }

  tell(name: EventName, jobId?: string, fields?: EventFields): void {
    this.changed = true;
    this.events.push(fields !== undefined ? [name, jobId ?? null, fields] : jobId !== undefined ? [name, jobId] : [name]);
  }

  /** Call it when a job with this key has started to wait, has left waiting or active, or has changed its place. */
  touch(key: string | null): void {
    if (key !== null) this.touched.add(key);
  }

  /** Returns a place before all waiting jobs. `toBack` returns a place after them. */
  toFront(): number {
    return --this.front;
  }

  toBack(): number {
    return ++this.back;
  }

  /** Counts a job that enters (1) or leaves (-1) waiting. */
  countWaiting(priority: number, by: 1 | -1): void {
    if (priority > 0) this.prioritized += by;
    else this.waiting += by;
  }

  get allWaiting(): number {
    return this.waiting + this.prioritized;
  }

  countFinished(state: FinishedState, by: number): void {
    this[state] += by;
  }

  get counts(): QueueStatus['counts'] {
    const { waiting, prioritized, delayed, active, completed, failed } = this;
    return { waiting, prioritized, delayed, active, completed, failed };
  }
}

const COLUMNS = [
  'version',
  'touchedAt',
  'paused',
  'maxActive',
  'keyed',
  'limitedUntil',
  'windowEnds',
  'windowUsed',
  'windowMax',
  'lastId',
  'front',
  'back',
  'fence',
  'firstEvent',
  'lastEvent',
  'waiting',
  'prioritized',
  'delayed',
  'active',
  'completed',
  'failed',
] as const;

/** The log may exceed `EVENTS_KEPT` by this many events, so that trimming is rare. */
const TRIM_EVERY = 1000;
/** The same for `EVENTS_BYTES_KEPT`, in bytes that each process writes. */
const TRIM_EVERY_BYTES = 1024 * 1024;
/** Events beyond this many characters go into another row, because a reader parses whole rows. */
const ROW_BYTES = 1024 * 1024;
/** If a row has at most this many bytes per event, its events have no long values. */
const LIGHT_BYTES = 2 * SHORT_VALUE_BYTES;
/** Bytes that one trim may delete, because an earlier version may have left a log of any size. */
const TRIMMED_BYTES_AT_ONCE = 16 * 1024 * 1024;

export class QueueTable {
  readonly #lanes: Lanes;
  readonly #read: Statement<[queue: number, ...values: number[]]>;
  readonly #create: Statement;
  readonly #save: Statement;
  readonly #tell: Statement;
  readonly #trim: Statement;
  readonly #firstEvent: Statement<[number | null]>;
  readonly #eventBytes: Statement<[first: number, last: number, bytes: number]>;
  readonly #body: Statement<[string]>;
  readonly #rewrite: Statement;
  /** By queue: bytes that this process has written since it last measured the log. */
  readonly #untrimmedBytes = new Map<number, number>();

  constructor(db: Database, lanes: Lanes) {
    this.#lanes = lanes;
    this.#read = db.prepare(`SELECT queue, ${COLUMNS.join(', ')} FROM queues WHERE name = ?`);
    this.#create = db.prepare('INSERT INTO queues (name) VALUES (?)');
    this.#save = db.prepare(`UPDATE queues SET ${COLUMNS.map((column) => `${column} = ?`).join(', ')} WHERE queue = ?`);
    this.#tell = db.prepare('INSERT INTO events (queue, first, last, body) VALUES (?, ?, ?, ?)');
    this.#trim = db.prepare('DELETE FROM events WHERE queue = ? AND first <= ? AND last <= ?');
    this.#firstEvent = db.prepare('SELECT min(first) FROM events WHERE queue = ?');
    this.#eventBytes = db.prepare('SELECT first, last, octet_length(body) FROM events WHERE queue = ? ORDER BY first');
    this.#body = db.prepare('SELECT body FROM events WHERE queue = ? AND first = ?');
    this.#rewrite = db.prepare('UPDATE events SET body = ? WHERE queue = ? AND first = ?');
  }

  read(name: string): QueueState | undefined {
    const row = this.#read.get(name);
    if (row === undefined) return undefined;
    const state = new QueueState(row[0], name);
    COLUMNS.forEach((column, index) => {
      state[column] = row[index + 1] as number;
    });
    return state;
  }

  /** Returns the row for readers. A queue without a row reads as an empty one, with the number 0, which no row has. */
  peek(name: string): QueueState {
    return this.read(name) ?? new QueueState(0, name);
  }

  create(name: string): QueueState {
    this.#create.run(name);
    return this.read(name) as QueueState;
  }

  /** Writes the row if it changed. Returns whether it wrote; if so, the row in the file equals `state`. */
  save(state: QueueState, now: number): boolean {
    if (!state.changed && !state.quietlyChanged) return false;
    this.#lanes.arrange(state);
    if (state.events.length > 0) this.#write(state);
    if (state.changed) state.version += 1;
    state.touchedAt = now;
    state.changed = false;
    state.quietlyChanged = false;
    const values: Value[] = COLUMNS.map((column) => state[column]);
    this.#save.run(...values, state.queue);
    return true;
  }

  #write(state: QueueState): void {
    const { queue, events } = state;
    const before = state.lastEvent;
    let bytes = 0;
    for (const body of bodiesOf(events)) {
      const first = state.lastEvent + 1;
      state.lastEvent += body.count;
      this.#tell.run(queue, first, state.lastEvent, body.text);
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
   * Trims the log by bytes: first the long values of old events, then old events. The file stores no byte count, because earlier
   * versions would not maintain it. So each process measures the log after TRIM_EVERY_BYTES of its own.
   */
  #trimBytes(state: QueueState, written: number): void {
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
    const events = JSON.parse(this.#body.get(queue, first)?.[0] ?? '[]') as ToldEvent[];
    const light = events.map((event): ToldEvent => {
      const [name, jobId, fields] = event;
      const text = String(fields?.['returnvalue'] ?? fields?.['data'] ?? '');
      return text.length > SHORT_VALUE_BYTES ? [name, jobId ?? null, LARGE_VALUE] : event;
    });
    const body = JSON.stringify(light);
    this.#rewrite.run(body, queue, first);
    return Buffer.byteLength(body);
  }

  #trimTo(state: QueueState, last: number): void {
    this.#trim.run(state.queue, last, last);
    state.firstEvent = this.#firstEvent.get(state.queue)?.[0] ?? state.lastEvent + 1;
  }
}

interface Body {
  text: string;
  count: number;
}

/** Encodes the events as one row, or as several if they are large. */
function bodiesOf(events: ToldEvent[]): Body[] {
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
