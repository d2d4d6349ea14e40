// Selects the jobs that `change` by selection works on.
import type { FinishedState } from '../../job/state.js';
import type { ListName, Selection } from '../contract/index.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import type { LeftRow } from './record.js';
import type { QueueState } from './state/queue-state.js';
import { STATE } from './state/schema.js';

/**
 * Up to this many, waiting and delayed jobs are sorted by age. More jobs are taken in the order of the index. Otherwise emptying a
 * queue of a million jobs in chunks would sort a million rows for each chunk.
 */
const SORTED_UP_TO = 10_000;

/** The priorities of the jobs of each list. */
export const PRIORITIES = { waiting: [0, 0], prioritized: [1, Number.MAX_SAFE_INTEGER] } as const;

/** Which jobs of the lists a change takes. */
export interface Fitting {
  /** The marks of unfinished jobs that the selection passes over. */
  passed?: number;
  /** True: letters alone. */
  letters?: boolean;
  /** True: jobs that have not finished, and active jobs too. */
  unfinished?: boolean;
}

interface Bounds {
  latest: number;
  passed: number;
  letters: boolean;
}

/** Finds jobs, list by list, the oldest of each list first. */
export class Selecting {
  readonly #finished: Statement<[...LeftRow, finishedOn: number]>;
  readonly #waitingByAge: Statement<LeftRow>;
  readonly #waiting: Statement<LeftRow>[];
  readonly #delayedByAge: Statement<LeftRow>;
  readonly #delayed: Statement<LeftRow>;
  readonly #active: Statement<LeftRow>;
  readonly #finishedLetters: Statement<[...LeftRow, finishedOn: number]>;
  readonly #parentsByAge: Statement<LeftRow>;
  readonly #parents: Statement<LeftRow>;

  constructor(db: Database) {
    const waiting = 'queue least most latest passed letters count';
    const others = 'queue latest passed letters count';
    this.#finished = sql(db, 'oldest-finished', 'queue state count');
    this.#waitingByAge = sql(db, 'select-waiting-by-age', waiting);
    this.#waiting = ['select-waiting', 'select-behind'].map((name) => sql(db, name, waiting));
    this.#delayedByAge = sql(db, 'select-delayed-by-age', others);
    this.#delayed = sql(db, 'select-delayed', others);
    this.#active = sql(db, 'select-active', others);
    this.#finishedLetters = sql(db, 'finished-letters', 'queue state count');
    this.#parentsByAge = sql(db, 'select-parents-by-age', others);
    this.#parents = sql(db, 'select-parents', others);
  }

  select(
    queue: QueueState,
    { lists, olderThanMs, limit }: Selection,
    { passed = 0, letters = false, unfinished = false }: Fitting,
    now: number,
  ): [ListName, LeftRow[]][] {
    const latest = olderThanMs === undefined ? Number.MAX_SAFE_INTEGER : now - olderThanMs;
    let left = limit;
    return [...new Set(lists)].flatMap((list): [ListName, LeftRow[]][] => {
      const isTaken = unfinished ? !isFinishedList(list) : list !== 'active';
      if (!isTaken || left <= 0) return [];
      const rows = this.#oldest(queue, list, { latest, passed, letters }, left);
      left -= rows.length;
      return [[list, rows]];
    });
  }

  #oldest(queue: QueueState, list: ListName, { latest, passed, letters }: Bounds, limit: number): LeftRow[] {
    const { queue: number } = queue;
    if (isFinishedList(list)) {
      // Filter here and not in the query, which would read on through all younger jobs.
      const finished = letters ? this.#finishedLetters : this.#finished;
      const rows = finished.all(number, STATE[list], limit).filter((row) => (row.at(-1) as number) <= latest);
      return rows as unknown as LeftRow[];
    }
    const sorted = queue.counts[list] <= SORTED_UP_TO;
    const bounds = [latest, passed, letters ? 1 : 0];
    if (list === 'active') return this.#active.all(number, ...bounds, limit);
    if (list === 'delayed') return (sorted ? this.#delayedByAge : this.#delayed).all(number, ...bounds, limit);
    if (list === 'waiting-children') return (sorted ? this.#parentsByAge : this.#parents).all(number, ...bounds, limit);
    const [least, most] = PRIORITIES[list];
    if (sorted) return this.#waitingByAge.all(number, least, most, ...bounds, limit);
    const rows: LeftRow[] = [];
    for (const statement of this.#waiting)
      if (rows.length < limit) rows.push(...statement.all(number, least, most, ...bounds, limit - rows.length));
    return rows;
  }
}

function isFinishedList(list: ListName): list is FinishedState {
  return list === 'completed' || list === 'failed';
}
