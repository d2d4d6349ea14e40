// Which job of a lock key may be claimed. Of those that wait for one key, the first stands in the claim order (state waiting) while
// the key is free; all others stand behind it (state behind), where claims never look: a million of them cost a claim nothing.
// Verbs put a job with a key behind it, name the key whenever one of its jobs has moved (`QueueState.touch`), and the
// lanes that were touched are put right before the next claim and before the commit.
import type { Database, Statement } from './driver.js';
import { STATE } from './schema.js';

/** What lanes need of a queue's row. */
interface Keyed {
  readonly queue: number;
  /** Keys whose lanes are to be put right. */
  readonly touched: Set<string>;
}

type Place = [job: number, priority: number, ord: number];

export class Lanes {
  readonly #taken: Statement<[number]>;
  readonly #first: Statement<Place>;
  readonly #move: Statement;

  constructor(db: Database) {
    this.#taken = db.prepare(`SELECT 1 FROM jobs WHERE queue = ? AND lockKey = ? AND state = ${STATE.active} LIMIT 1`);
    this.#first = db.prepare(
      'SELECT job, priority, ord FROM jobs WHERE queue = ? AND lockKey = ? AND state = ? ORDER BY priority, ord LIMIT 1',
    );
    this.#move = db.prepare('UPDATE jobs SET state = ? WHERE job = ?');
  }

  isTaken({ queue }: Pick<Keyed, 'queue'>, key: string): boolean {
    return this.#taken.get(queue, key) !== undefined;
  }

  arrange(queue: Keyed): void {
    for (const key of queue.touched) this.#arrangeOne(queue, key);
    queue.touched.clear();
  }

  #arrangeOne(queue: Keyed, key: string): void {
    const shown = this.#first.get(queue.queue, key, STATE.waiting);
    const next = this.isTaken(queue, key) ? undefined : this.#nextOf(queue, key, shown);
    if (next?.[0] === shown?.[0]) return;
    if (shown !== undefined) this.#move.run(STATE.behind, shown[0]);
    if (next !== undefined) this.#move.run(STATE.waiting, next[0]);
  }

  #nextOf(queue: Keyed, key: string, shown: Place | undefined): Place | undefined {
    const hidden = this.#first.get(queue.queue, key, STATE.behind);
    if (hidden === undefined || shown === undefined) return hidden ?? shown;
    const [, priority, ord] = hidden;
    return priority < shown[1] || (priority === shown[1] && ord < shown[2]) ? hidden : shown;
  }
}
