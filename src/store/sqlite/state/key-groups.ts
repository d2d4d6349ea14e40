// Decides which job of a lock key may be claimed. The jobs that wait for one key form its key group. While the key is
// free, the first job of the group is in the claim order (state waiting). All others are behind it (state behind), which claims
// never read, so a million of them cost a claim nothing.
// A verb puts a job with a key into state behind, and calls `QueueState.touch` whenever a job of the key has moved. `arrange`
// repairs the touched groups before the next claim and before the commit.
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import { STATE } from './schema.js';

/** The part of a queue's row that key groups need. */
interface Keyed {
  readonly queue: number;
  /** Keys whose groups must be rearranged. */
  readonly touched: Set<string>;
}

type Place = [job: number, priority: number, ord: number];

export class KeyGroups {
  readonly #first: Statement<Place>;
  readonly #move: Statement;

  constructor(db: Database) {
    this.#first = sql(db, 'first-of-key', 'queue key state');
    this.#move = sql(db, 'set-state', 'state job');
  }

  isTaken({ queue }: Pick<Keyed, 'queue'>, key: string): boolean {
    return this.#first.get(queue, key, STATE.active) !== undefined;
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
