// Counts the finished jobs of each minute, for metrics (table `metrics`). A commit writes one row for each kind of end. A minute without
// a finished job has no row. Only the oldest kept minute always has one, so its row says where the points begin.
import type { FinishedState } from '../../../job/state.js';
import type { MetricsSetting, QueueMetrics } from '../../contract/index.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import { STATE } from './schema.js';

const MINUTE_MS = 60_000;
const KINDS = ['completed', 'failed'] as const;

/** The part of a queue's row that metrics need. */
interface Counted {
  readonly queue: number;
  readonly rules: { metrics?: MetricsSetting };
  /** Jobs that have finished and that the table does not count yet. */
  readonly finishes: Record<FinishedState, number>;
}

export class MinuteCounts {
  readonly #newest: Statement<[minute: number, count: number, total: number]>;
  readonly #oldest: Statement<[minute: number]>;
  readonly #count: Statement;
  readonly #delete: Statement;
  readonly #list: Statement<[minute: number, count: number]>;

  constructor(db: Database) {
    this.#newest = sql(db, 'newest-minute', 'queue kind');
    this.#oldest = sql(db, 'oldest-minute', 'queue kind');
    this.#count = sql(db, 'count-minute', 'queue kind minute jobs total');
    this.#delete = sql(db, 'delete-minutes', 'queue kind minute');
    this.#list = sql(db, 'list-minutes', 'queue kind first last');
  }

  /** Writes the jobs that have finished since the last call. If the clock was set back, they count in the newest minute. */
  save(queue: Counted, now: number): void {
    for (const kind of KINDS) {
      const jobs = queue.finishes[kind];
      if (jobs === 0) continue;
      queue.finishes[kind] = 0;
      const [newest, , total] = this.#newest.get(queue.queue, STATE[kind]) ?? [0, 0, 0];
      const minute = Math.max(newest, Math.floor(now / MINUTE_MS));
      this.#count.run(queue.queue, STATE[kind], minute, jobs, total + jobs);
      if (minute > newest) this.#trim(queue, kind, minute);
    }
  }

  /** Deletes points beyond the number that the queue keeps now. */
  trim(queue: Counted): void {
    for (const kind of KINDS) this.#trim(queue, kind, this.#newest.get(queue.queue, STATE[kind])?.[0] ?? 0);
  }

  clear(queue: Counted): void {
    for (const kind of KINDS) {
      queue.finishes[kind] = 0;
      this.#delete.run(queue.queue, STATE[kind], Number.MAX_SAFE_INTEGER);
    }
  }

  /** `pick` returns the positions of the points that the reader asked for. */
  read(queue: Counted, kind: FinishedState, pick: (points: number) => { from: number; count: number }): QueueMetrics {
    const newest = this.#newest.get(queue.queue, STATE[kind]);
    if (newest === undefined) return { count: 0, points: [], total: 0 };
    const [minute, inMinute, count] = newest;
    const total = minute - (this.#oldest.get(queue.queue, STATE[kind])?.[0] ?? minute);
    const wanted = pick(total);
    const last = minute - 1 - wanted.from;
    const points = Array.from({ length: Math.max(0, wanted.count) }, () => 0);
    for (const [one, jobs] of this.#list.all(queue.queue, STATE[kind], last - points.length + 1, last)) points[last - one] = jobs;
    return { count, current: { minute, count: inMinute }, points, total };
  }

  #trim({ queue, rules }: Counted, kind: FinishedState, newest: number): void {
    const oldest = newest - (rules.metrics?.points ?? 0);
    if ((this.#oldest.get(queue, STATE[kind])?.[0] ?? newest) >= oldest) return;
    this.#delete.run(queue, STATE[kind], oldest);
    this.#count.run(queue, STATE[kind], oldest, 0, 0);
  }
}
