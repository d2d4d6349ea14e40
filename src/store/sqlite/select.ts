// Selects the jobs that `clear` and `requeue` work on.
import type { StoredState } from '../../job/state.js';
import type { Selection } from '../contract/index.js';
import type { Database, Statement } from './driver.js';
import type { QueueState } from './queue-state.js';
import { STATE } from './schema.js';

export interface Selected {
  job: number;
  id: string;
  priority: number;
  logNext: number;
  lockKey: string | null;
}

type Row = [job: number, id: string, priority: number, logNext: number, lockKey: string | null];
type Unlocked = Exclude<StoredState, 'active'>;

/**
 * Up to this many, waiting and delayed jobs are sorted by age. More jobs are taken in the order of the index. Otherwise emptying a
 * queue of a million jobs in chunks would sort a million rows for each chunk.
 */
const SORTED_UP_TO = 10_000;

/** Finds unlocked jobs, state by state, the oldest of each state first. */
export class Selecting {
  readonly #finished: Statement<[...Row, finishedOn: number]>;
  readonly #waitingByAge: Statement<Row>;
  readonly #waiting: Statement<Row>;
  readonly #behind: Statement<Row>;
  readonly #delayedByAge: Statement<Row>;
  readonly #delayed: Statement<Row>;

  constructor(db: Database) {
    const select = 'SELECT job, id, priority, logNext, lockKey FROM jobs WHERE queue = ? AND';
    this.#finished = db.prepare(
      'SELECT job, id, priority, logNext, lockKey, finishedOn FROM jobs WHERE queue = ? AND state >= 4 AND state = ? ORDER BY ord LIMIT ? + 0',
    );
    this.#waitingByAge = db.prepare(
      `${select} state = ${STATE.waiting} AND addedAt <= ? UNION ALL ${select} state = ${STATE.behind} AND addedAt <= ? ORDER BY job LIMIT ? + 0`,
    );
    this.#waiting = db.prepare(`${select} state = ${STATE.waiting} AND addedAt <= ? ORDER BY priority, ord LIMIT ? + 0`);
    this.#behind = db.prepare(`${select} state = ${STATE.behind} AND addedAt <= ? ORDER BY priority, ord LIMIT ? + 0`);
    this.#delayedByAge = db.prepare(`${select} state = ${STATE.delayed} AND addedAt <= ? ORDER BY job LIMIT ? + 0`);
    this.#delayed = db.prepare(`${select} state = ${STATE.delayed} AND addedAt <= ? ORDER BY dueAt, ord LIMIT ? + 0`);
  }

  select(queue: QueueState, { states, olderThanMs, limit }: Selection, now: number): [Unlocked, Selected[]][] {
    const latest = olderThanMs === undefined ? Number.MAX_SAFE_INTEGER : now - olderThanMs;
    let left = limit;
    return [...new Set(states)].flatMap((state): [Unlocked, Selected[]][] => {
      // All active jobs are locked.
      if (state === 'active' || left <= 0) return [];
      const rows = this.#oldest(queue, state, latest, left);
      left -= rows.length;
      return [[state, rows.map(([job, id, priority, logNext, lockKey]) => ({ job, id, priority, logNext, lockKey }))]];
    });
  }

  #oldest(queue: QueueState, state: Unlocked, latest: number, limit: number): Row[] {
    if (state === 'completed' || state === 'failed') {
      // Filter here and not in the query, which would read on through all younger jobs.
      const rows = this.#finished.all(queue.queue, STATE[state], limit).filter((row) => row[5] <= latest);
      return rows as unknown as Row[];
    }
    if (state === 'waiting') {
      const { queue: number } = queue;
      if (queue.allWaiting <= SORTED_UP_TO) return this.#waitingByAge.all(number, latest, number, latest, limit);
      const first = this.#waiting.all(number, latest, limit);
      return first.length === limit ? first : [...first, ...this.#behind.all(number, latest, limit - first.length)];
    }
    const statement = queue.delayed <= SORTED_UP_TO ? this.#delayedByAge : this.#delayed;
    return statement.all(queue.queue, latest, limit);
  }
}
