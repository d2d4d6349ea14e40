// The turns of one claim. The claim asks for the next job until it has enough, and says of each job that it takes it.
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import { Group, type GroupRow } from './group.js';
import type { Grouped, Groups } from './groups.js';
import { useRoom } from './rate-limit.js';
import { STATE } from './schema.js';
import type { Moment } from './clock.js';

type Place = [job: number, priority: number, ord: number];

/** A place before all jobs. */
const BEFORE_ALL: Place = [0, -1, 0];

/** A group in this claim. The claim marks its jobs as active after it has taken all of them, so they are counted here. */
interface Visit {
  group: Group;
  active: number;
  next: Place | undefined;
}

export class TurnStatements {
  readonly first: Statement<GroupRow>;
  readonly next: Statement<Place>;
  readonly endRests: Statement;

  constructor(db: Database) {
    this.first = sql(db, 'first-in-ring', 'queue');
    this.next = sql(db, 'next-of-group', 'queue group state priority ord');
    this.endRests = sql(db, 'end-rests', 'queue now');
  }
}

export class Turns {
  readonly #statements: TurnStatements;
  readonly #groups: Groups;
  readonly #transaction: Moment;
  readonly #queue: Grouped;
  readonly #visits = new Map<string, Visit>();
  /** The first group with room and a waiting job. */
  #first: Visit | undefined;

  constructor(statements: TurnStatements, groups: Groups, transaction: Moment, queue: Grouped) {
    this.#statements = statements;
    this.#groups = groups;
    this.#transaction = transaction;
    this.#queue = queue;
    statements.endRests.run(queue.queue, transaction.now);
  }

  /** Returns the job of a group whose turn it is, or 'plain' for the first job without a group. `anyPlain`: there is such a job. */
  next(anyPlain: boolean): number | 'plain' | undefined {
    this.#first = this.#firstWithJob();
    const { group, next } = this.#first ?? {};
    if (group === undefined || next === undefined) return anyPlain ? 'plain' : undefined;
    return anyPlain && this.#groups.turnsOf(this.#queue).plain <= (group.number ?? 0) ? 'plain' : next[0];
  }

  /** Call it when the claim takes the job that `next` returned. A job without a group uses up no turn while no group has room. */
  take(what: number | 'plain'): void {
    if (this.#first === undefined) return;
    const turns = this.#groups.turnsOf(this.#queue);
    turns.last += 1;
    if (what === 'plain') turns.plain = turns.last;
    else this.#takeFirst(this.#first, turns.last);
  }

  /** Call it when the claim has all its jobs. */
  end(): void {
    if (this.#visits.size > 0) this.#groups.saveTurns(this.#queue);
  }

  #takeFirst(visit: Visit, number: number): void {
    const { group, next = BEFORE_ALL } = visit;
    visit.next = this.#nextOf(group, next);
    visit.active += 1;
    group.number = visit.next === undefined ? undefined : number;
    useRoom(group, 1, this.#groups.rateOf(this.#queue, group), this.#transaction);
    this.#save(visit);
  }

  #firstWithJob(): Visit | undefined {
    for (;;) {
      const row = this.#statements.first.get(this.#queue.queue);
      if (row === undefined) return undefined;
      const visit = this.#visits.get(row[0]) ?? this.#enter(Group.of(row));
      const { group, active, next } = visit;
      const isFull = !this.#groups.hasPlace(this.#queue, group, active);
      if (next !== undefined && !isFull) return visit;
      // The group goes out of line, or an older version has made a job of it active, and the group loses its place in the ring.
      if (!isFull) group.number = undefined;
      this.#save(visit);
    }
  }

  #enter(group: Group): Visit {
    const visit = { group, active: this.#groups.countActive(this.#queue, group), next: this.#nextOf(group, BEFORE_ALL) };
    this.#visits.set(group.key, visit);
    return visit;
  }

  #nextOf({ key }: Group, [, priority, ord]: Place): Place | undefined {
    return this.#statements.next.get(this.#queue.queue, key, STATE.behind, priority, ord);
  }

  #save({ group, active }: Visit): void {
    this.#groups.save(this.#queue, group, this.#transaction.now, active);
  }
}
