// Groups that need no row any more: sweeps delete their rows.
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import type { Grouped } from './groups.js';

export class IdleGroups {
  readonly #any: Statement<[number]>;
  readonly #delete: Statement;

  constructor(db: Database) {
    this.#any = sql(db, 'any-idle-group', 'queue now');
    this.#delete = sql(db, 'delete-idle-groups', 'queue now count');
  }

  /** Returns whether a sweep has something to do. */
  any({ queue, rules }: Grouped, now: number): boolean {
    return rules.groups !== undefined && this.#any.get(queue, now) !== undefined;
  }

  delete({ queue, rules }: Grouped, limit: number, now: number): void {
    if (rules.groups !== undefined) this.#delete.run(queue, now, limit);
  }
}
