// Groups that need a sweep: idle ones, whose rows are deleted, and lost ones. A process of an older version moves jobs of groups without
// their groups: it may let a job wait although its group is out of line, or end a run and leave the group without its place.
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import type { Grouped, Groups } from './groups.js';

/** Groups that one look walks through. */
const LOOKED_AT_ONCE = 500;
/** How often a store walks through all groups of a queue. */
const LOOK_EVERY_MS = 10_000;

interface Walk {
  /** The key after which it goes on. */
  after: string;
  from: number;
}

export class LostGroups {
  readonly #groups: Groups;
  readonly #lost: Statement<[key: string, isLost: number, waits: number]>;
  readonly #anyIdle: Statement<[number]>;
  readonly #deleteIdle: Statement;
  /** By queue. */
  readonly #walks = new Map<number, Walk>();

  constructor(db: Database, groups: Groups) {
    this.#groups = groups;
    this.#lost = sql(db, 'lost-groups', 'queue after count');
    this.#anyIdle = sql(db, 'any-idle-group', 'queue now');
    this.#deleteIdle = sql(db, 'delete-idle-groups', 'queue now count');
  }

  /** Returns whether a sweep has something to do. */
  any(queue: Grouped, now: number): boolean {
    if (queue.rules.groups === undefined) return false;
    return this.#anyIdle.get(queue.queue, now) !== undefined || this.#walk(queue, now).length > 0;
  }

  /** Deletes idle groups and puts lost groups in their places. Returns whether any group was lost. */
  mend(queue: Grouped, limit: number, now: number): boolean {
    if (queue.rules.groups === undefined) return false;
    this.#deleteIdle.run(queue.queue, now, limit);
    const lost = this.#walk(queue, now);
    for (const [key, , waits] of lost) queue.touchedGroups.set(key, waits === 1);
    this.#groups.arrange(queue, now);
    if (lost.length > 0) this.#goOn(queue, lost.at(-1)?.[0]);
    return lost.length > 0;
  }

  /** Looks at the next groups. Returns the lost ones. If there are any, the next call looks at the same groups again. */
  #walk(queue: Grouped, now: number): [key: string, isLost: number, waits: number][] {
    const { after = '', from = 0 } = this.#walks.get(queue.queue) ?? {};
    if (now < from) return [];
    const found = this.#lost.all(queue.queue, after, LOOKED_AT_ONCE);
    const lost = found.filter(([, isLost]) => isLost === 1);
    const isThrough = found.length < LOOKED_AT_ONCE;
    if (lost.length === 0)
      this.#walks.set(
        queue.queue,
        isThrough ? { after: '', from: now + LOOK_EVERY_MS } : { after: found.at(-1)?.[0] ?? '', from: 0 },
      );
    return lost;
  }

  #goOn({ queue }: Grouped, after = ''): void {
    this.#walks.set(queue, { after, from: 0 });
  }
}
