// Trims finished jobs. Trimming takes the oldest jobs first, and a bounded number per call; the next call trims the rest.
import type { Keep } from '../../job/outcome.js';
import type { FinishedState } from '../../job/state.js';
import type { Database, Statement } from './driver.js';
import type { QueueState } from './queue-state.js';
import { STATE } from './schema.js';

const TRIMMED_AT_ONCE = 1000;

type OldRow = [job: number, logNext: number, finishedOn: number];

export class Retention {
  readonly #oldest: Statement<OldRow>;
  readonly #delete: Statement;
  readonly #deleteLogs: Statement;

  constructor(db: Database) {
    this.#oldest = db.prepare(
      'SELECT job, logNext, finishedOn FROM jobs WHERE queue = ? AND state >= 4 AND state = ? ORDER BY ord LIMIT ? + 0',
    );
    this.#delete = db.prepare('DELETE FROM jobs WHERE job = ?');
    this.#deleteLogs = db.prepare('DELETE FROM logs WHERE job = ?');
  }

  /**
   * Applies the `keep` options of jobs that have just finished. `{ count: 0 }` concerns its own job alone, which is already
   * deleted.
   */
  trim(queue: QueueState, state: FinishedState, keeps: readonly Keep[], now: number): void {
    const wanted = keeps.filter(({ count }) => count !== 0);
    const most = Math.min(...wanted.map(({ count }) => count ?? Number.POSITIVE_INFINITY));
    const age = Math.min(...wanted.map(({ ageMs }) => ageMs ?? Number.POSITIVE_INFINITY));
    const excess = Math.min(queue[state] - most, TRIMMED_AT_ONCE);
    if (excess > 0) this.#drop(queue, state, this.#oldest.all(queue.queue, STATE[state], excess));
    if (age < Number.POSITIVE_INFINITY) this.#dropAged(queue, state, now - age);
  }

  deleteLogs(job: number): void {
    this.#deleteLogs.run(job);
  }

  /** Reads one row as long as no job is old enough. A condition in the query would read all kept jobs. */
  #dropAged(queue: QueueState, state: FinishedState, latest: number): void {
    const [first] = this.#oldest.all(queue.queue, STATE[state], 1);
    if (first === undefined || first[2] > latest) return;
    const rows = this.#oldest.all(queue.queue, STATE[state], TRIMMED_AT_ONCE);
    this.#drop(
      queue,
      state,
      rows.filter(([, , finishedOn]) => finishedOn <= latest),
    );
  }

  #drop(queue: QueueState, state: FinishedState, rows: OldRow[]): void {
    for (const [job, logNext] of rows) {
      this.#delete.run(job);
      if (logNext > 0) this.#deleteLogs.run(job);
    }
    queue[state] -= rows.length;
  }
}
