// The row of a queue: counters, counts, pause and limits. A transaction reads the row once. Its operations change the row in memory
// and record their events on it. The transaction writes the row once at its end, with all events in one row of `events`.
import type { EventName, QueueStatus } from '../../contract/index.js';
import type { FinishedState, StoredState } from '../../../job/state.js';
import type { Database, Statement, Value } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import { type EventFields, EventRows, type RecordedEvent } from './event-rows.js';
import type { KeyGroups } from './key-groups.js';
import type { Grouped, Groups } from './groups.js';
import type { MinuteCounts } from './minute-counts.js';
import type { QueueRules } from './rules.js';

const NO_RULES: Readonly<QueueRules> = {};

export class QueueState implements Grouped {
  readonly queue: number;
  readonly name: string;
  readonly events: RecordedEvent[] = [];
  changed = false;
  /** The row must be written, but no watcher must wake. */
  quietlyChanged = false;
  /** Keys of jobs that have moved since their key groups were last arranged. */
  readonly touched = new Set<string>();
  readonly touchedGroups = new Map<string, boolean>();
  turns: Grouped['turns'];

  /** Grows with every write that watchers must see. Watchers in other processes compare it to find the queue that changed. */
  version = 0;
  touchedAt = 0;
  /** 0 or 1. */
  paused = 0;
  /** The cap; -1 if there is none. */
  maxActive = -1;
  /** 1 once a job with a key was added. Claims of other queues skip the query for the first jobs of keys. */
  keyed = 0;
  /** 1 once the queue has had a schedule. Claims, probes and sweeps of other queues skip the queries for schedules. */
  scheduled = 0;
  limitedUntil = 0;
  windowEnds = 0;
  windowUsed = 0;
  rules = NO_RULES;
  /** Jobs that have finished and that `metrics` does not count yet. Always 0 in a queue without metrics. */
  readonly finishes: Record<FinishedState, number> = { completed: 0, failed: 0 };
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
  /** Jobs in waiting-children. */
  parents = 0;

  constructor(queue: number, name: string) {
    this.queue = queue;
    this.name = name;
  }

  record(name: EventName, jobId?: string, fields?: EventFields): void {
    this.recordAny(name, jobId, fields);
  }

  /** `record` for names that users choose. */
  recordAny(name: string, jobId?: string, fields?: EventFields): void {
    this.changed = true;
    this.events.push(fields !== undefined ? [name, jobId ?? null, fields] : jobId !== undefined ? [name, jobId] : [name]);
  }

  /** Call it when a job with this key has started to wait, has left waiting or active, or has changed its place. */
  touch(key: string | null): void {
    if (key !== null) this.touched.add(key);
  }

  /** Call it when a job of this group has left active, or (`waits`) has begun to wait. */
  touchGroup(group: string, waits: boolean): void {
    this.touchedGroups.set(group, waits || this.touchedGroups.get(group) === true);
  }

  /** Returns the first of `count` places before all waiting jobs. `toBack` returns a place after them. */
  toFront(count = 1): number {
    this.front -= count;
    return this.front;
  }

  toBack(): number {
    return ++this.back;
  }

  /** Counts a job that enters (1) or leaves (-1) a state. */
  count(state: StoredState, priority: number, by: 1 | -1): void {
    if (state === 'waiting-children') this.parents += by;
    else this[state === 'waiting' && priority > 0 ? 'prioritized' : state] += by;
  }

  /** Counts a job that has finished for good. */
  countFinish(kind: FinishedState): void {
    if (this.rules.metrics !== undefined) this.finishes[kind] += 1;
  }

  get allWaiting(): number {
    return this.waiting + this.prioritized;
  }

  get counts(): QueueStatus['counts'] {
    const { waiting, prioritized, delayed, active, completed, failed, parents } = this;
    return { waiting, prioritized, delayed, active, completed, failed, 'waiting-children': parents };
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
  'scheduled',
  'parents',
] as const;

export interface QueueTableParts {
  keyGroups: KeyGroups;
  groups: Groups;
  minutes: MinuteCounts;
}

export class QueueTable {
  readonly #keyGroups: KeyGroups;
  readonly #groups: Groups;
  readonly #minutes: MinuteCounts;
  readonly #events: EventRows;
  readonly #read: Statement<[queue: number, ...values: number[], rules: string | null]>;
  readonly #create: Statement;
  readonly #save: Statement;

  constructor(db: Database, { keyGroups, groups, minutes }: QueueTableParts) {
    this.#keyGroups = keyGroups;
    this.#groups = groups;
    this.#minutes = minutes;
    this.#events = new EventRows(db);
    this.#read = sql(db, 'read-queue', 'name');
    this.#create = sql(db, 'create-queue', 'name');
    this.#save = sql(db, 'save-queue', `${COLUMNS.join(' ')} queue`);
  }

  read(name: string): QueueState | undefined {
    const row = this.#read.get(name);
    if (row === undefined) return undefined;
    const state = new QueueState(row[0], name);
    COLUMNS.forEach((column, index) => {
      state[column] = row[index + 1] as number;
    });
    const rules = row.at(-1) as string | null;
    if (rules !== null) state.rules = JSON.parse(rules) as QueueRules;
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
    this.#keyGroups.arrange(state);
    this.#groups.arrange(state, now);
    if (state.events.length > 0) this.#events.write(state);
    if (state.rules.metrics !== undefined) this.#minutes.save(state, now);
    if (state.changed) state.version += 1;
    state.touchedAt = now;
    state.changed = false;
    state.quietlyChanged = false;
    const values: Value[] = COLUMNS.map((column) => state[column]);
    this.#save.run(...values, state.queue);
    return true;
  }
}
