// Selects the jobs that `change` by selection works on.
import type { ListName, Selection } from '../contract/index.js';
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
export type UnlockedList = Exclude<ListName, 'active'>;
type OpenList = Exclude<UnlockedList, 'completed' | 'failed'>;

/**
 * Up to this many, waiting and delayed jobs are sorted by age. More jobs are taken in the order of the index. Otherwise emptying a
 * queue of a million jobs in chunks would sort a million rows for each chunk.
 */
const SORTED_UP_TO = 10_000;

/** The rows of each list, in one part per stretch of the index. */
const LISTS: Record<OpenList, { parts: string[]; order: string }> = {
  waiting: { parts: [`state = ${STATE.waiting} AND priority = 0`, `state = ${STATE.behind} AND priority = 0`], order: 'ord' },
  prioritized: {
    parts: [`state = ${STATE.waiting} AND priority > 0`, `state = ${STATE.behind} AND priority > 0`],
    order: 'priority, ord',
  },
  delayed: { parts: [`state = ${STATE.delayed}`], order: 'dueAt, ord' },
};

interface Statements {
  byAge: Statement<Row>;
  byIndex: Statement<Row>[];
}

/** Finds unlocked jobs, list by list, the oldest of each list first. */
export class Selecting {
  readonly #finished: Statement<[...Row, finishedOn: number]>;
  readonly #open: Record<OpenList, Statements>;

  constructor(db: Database) {
    this.#finished = db.prepare(
      'SELECT job, id, priority, logNext, lockKey, finishedOn FROM jobs WHERE queue = ? AND state >= 4 AND state = ? ORDER BY ord LIMIT ? + 0',
    );
    const select = (rows: string) =>
      `SELECT job, id, priority, logNext, lockKey FROM jobs WHERE queue = ? AND ${rows} AND coalesce(processedOn, addedAt) <= ?`;
    const prepare = (list: OpenList): Statements => {
      const { parts, order } = LISTS[list];
      return {
        byAge: db.prepare(`${parts.map(select).join(' UNION ALL ')} ORDER BY job LIMIT ? + 0`),
        byIndex: parts.map((rows) => db.prepare(`${select(rows)} ORDER BY ${order} LIMIT ? + 0`)),
      };
    };
    this.#open = { waiting: prepare('waiting'), prioritized: prepare('prioritized'), delayed: prepare('delayed') };
  }

  select(queue: QueueState, { lists, olderThanMs, limit }: Selection, now: number): [UnlockedList, Selected[]][] {
    const latest = olderThanMs === undefined ? Number.MAX_SAFE_INTEGER : now - olderThanMs;
    let left = limit;
    return [...new Set(lists)].flatMap((list): [UnlockedList, Selected[]][] => {
      // All active jobs are locked.
      if (list === 'active' || left <= 0) return [];
      const rows = this.#oldest(queue, list, latest, left);
      left -= rows.length;
      return [[list, rows.map(([job, id, priority, logNext, lockKey]) => ({ job, id, priority, logNext, lockKey }))]];
    });
  }

  #oldest(queue: QueueState, list: UnlockedList, latest: number, limit: number): Row[] {
    const { queue: number } = queue;
    if (list === 'completed' || list === 'failed') {
      // Filter here and not in the query, which would read on through all younger jobs.
      const rows = this.#finished.all(number, STATE[list], limit).filter((row) => row[5] <= latest);
      return rows as unknown as Row[];
    }
    const { byAge, byIndex } = this.#open[list];
    if (queue[list] <= SORTED_UP_TO) return byAge.all(...byIndex.flatMap(() => [number, latest]), limit);
    const rows: Row[] = [];
    for (const statement of byIndex) if (rows.length < limit) rows.push(...statement.all(number, latest, limit - rows.length));
    return rows;
  }
}
