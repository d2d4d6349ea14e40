// The turns of one claim. The claim asks for the next job until it has enough, and says of each job that it takes it. The groups are read
// in pages, each group with its first job, and are written once, at the end of the claim.
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import type { MemberRow } from '../record.js';
import { Group, type GroupRow } from './group.js';
import { type Grouped, type Groups, rulesOf } from './groups.js';
import { STATE } from './schema.js';
import type { Moment } from './clock.js';

/** Groups without room or jobs that one claim passes. */
const PASSED_AT_ONCE = 100;

/** `page-of-ring` in sql/groups.sql. The columns of the job are null if no job waits. */
type RingRow = [...GroupRow, active: number, moreWait: number, ...MemberRow];
const [AT_ACTIVE, AT_MORE, AT_JOB] = [10, 11, 12];

/** A group in this claim. The claim marks its jobs as active after it has taken all of them, so they are counted here. */
interface Visit {
  readonly group: Group;
  active: number;
  /** The next waiting jobs, as far as they are read. */
  jobs: MemberRow[];
  /** Whether jobs wait behind those that are read. */
  moreWait: boolean;
  /** The job that the claim took last. */
  taken?: MemberRow;
}

export interface ClaimSize {
  /** Jobs that the claim takes at most. */
  count: number;
  /** The longest data of a job that is read with the group. */
  longest: number;
}

export class TurnStatements {
  readonly page: Statement<RingRow>;
  readonly next: Statement<MemberRow>;

  constructor(db: Database) {
    this.page = sql(db, 'page-of-ring', 'most longest queue number key count');
    this.next = sql(db, 'next-of-group', 'longest queue group state priority ord count');
  }
}

export class Turns {
  readonly #statements: TurnStatements;
  readonly #groups: Groups;
  readonly #transaction: Moment;
  readonly #queue: Grouped;
  readonly #size: ClaimSize;
  /** Groups in the ring that the claim has not served, in their order, as far as they are read. */
  readonly #page: Visit[] = [];
  #pageEnd: [number: number, key: string] = [-1, ''];
  #isPageLast = false;
  #visited = 0;
  /** Groups that the claim has served and that have room and jobs. Their numbers are higher than those of all others. */
  readonly #served: Visit[] = [];
  #servedAgain = 0;
  readonly #changed: Visit[] = [];
  #taken = 0;
  #passed = 0;
  /** Whether further groups could not be let back into the ring by this claim. */
  readonly #areMoreResting: boolean;
  /** The first group with room and a waiting job. */
  #first: Visit | undefined;
  /** True if the claim stopped before it had seen all groups. */
  isCut = false;

  constructor(statements: TurnStatements, groups: Groups, transaction: Moment, queue: Grouped, size: ClaimSize) {
    this.#statements = statements;
    this.#groups = groups;
    this.#transaction = transaction;
    this.#queue = queue;
    this.#size = size;
    this.#areMoreResting = groups.letBack(queue, size.count + PASSED_AT_ONCE, transaction.now);
  }

  /** Returns the job of a group whose turn it is, or 'plain' for the first job without a group. `anyPlain`: there is such a job. */
  next(anyPlain: boolean): MemberRow | 'plain' | undefined {
    this.#first = this.#firstWithJob();
    const { group, jobs: [job] = [] } = this.#first ?? {};
    if (this.isCut) return undefined;
    if (group === undefined || job === undefined) return anyPlain ? 'plain' : undefined;
    return anyPlain && this.#groups.turnsOf(this.#queue).plain <= (group.number ?? 0) ? 'plain' : job;
  }

  /** Call it when the claim takes the job that `next` returned. A job without a group uses up no turn while no group has room. */
  take(what: MemberRow | 'plain'): void {
    this.#taken += 1;
    if (this.#first === undefined) return;
    const turns = this.#groups.turnsOf(this.#queue);
    turns.last += 1;
    if (what === 'plain') turns.plain = turns.last;
    else this.#takeFirst(this.#first, what, turns.last);
  }

  /** Call it when the claim has all its jobs. */
  end(): void {
    for (const { group, active } of this.#changed) this.#groups.save(this.#queue, group, this.#transaction.now, active);
    if (this.#page.length > 0) this.#groups.saveTurns(this.#queue);
  }

  #takeFirst(visit: Visit, job: MemberRow, number: number): void {
    const { group } = visit;
    this.#pass(visit);
    visit.jobs.shift();
    visit.taken = job;
    visit.active += 1;
    group.number = visit.jobs.length > 0 || visit.moreWait ? number : undefined;
    group.use(this.#groups.rateOf(this.#queue, group), this.#transaction);
    if (group.number !== undefined && this.#hasRoom(visit)) this.#served.push(visit);
  }

  #firstWithJob(): Visit | undefined {
    for (let visit = this.#nextVisit(); visit !== undefined; visit = this.#nextVisit()) {
      const hasRoom = this.#hasRoom(visit);
      if (hasRoom && visit.jobs.length > 0) return visit;
      // The group goes out of line, or it loses its place in the ring: its limits are lower now.
      if (hasRoom) visit.group.number = undefined;
      this.#pass(visit);
      this.#passed += 1;
    }
    return undefined;
  }

  #nextVisit(): Visit | undefined {
    this.isCut = this.#passed >= PASSED_AT_ONCE;
    if (this.isCut) return undefined;
    if (this.#visited === this.#page.length && !this.#isPageLast) this.#readPage();
    const visit = this.#page[this.#visited] ?? this.#served[this.#servedAgain];
    if (visit === undefined) this.isCut = this.#areMoreResting;
    else if (visit.jobs.length === 0 && visit.moreWait) this.#readJobs(visit);
    return visit;
  }

  /** Passes on to the next group. */
  #pass(visit: Visit): void {
    if (this.#visited < this.#page.length) {
      this.#visited += 1;
      this.#changed.push(visit);
    } else this.#servedAgain += 1;
  }

  #readPage(): void {
    const { count, longest } = this.#size;
    const most = rulesOf(this.#queue).maxActive ?? null;
    const rows = this.#statements.page.all(most, longest, this.#queue.queue, ...this.#pageEnd, count);
    const [key = '', number = 0] = rows.at(-1) ?? [];
    this.#pageEnd = [number ?? 0, key];
    this.#page.push(...rows.map(visitOf));
    this.#isPageLast = rows.length < count;
  }

  /** Reads as many jobs as the claim may still take of this group, if the groups go on to take turns. */
  #readJobs(visit: Visit): void {
    const { count, longest } = this.#size;
    const [priority, ord] = visit.taken === undefined ? [-1, 0] : [visit.taken[5], visit.taken[9]];
    const wanted = Math.ceil((count - this.#taken) / (this.#served.length - this.#servedAgain));
    const rows = this.#statements.next.all(longest, this.#queue.queue, visit.group.key, STATE.behind, priority, ord, wanted + 1);
    visit.jobs = rows.slice(0, wanted);
    visit.moreWait = rows.length > wanted;
  }

  #hasRoom({ group, active }: Visit): boolean {
    return this.#groups.hasRoom(this.#queue, group, active, this.#transaction.now);
  }
}

function visitOf(row: RingRow): Visit {
  const group = Group.of(row as unknown as GroupRow);
  const job = row.slice(AT_JOB) as MemberRow;
  const isEmpty = job[0] === null;
  return {
    group,
    active: row[AT_ACTIVE] as number,
    jobs: isEmpty ? [] : [job],
    moreWait: row[AT_MORE] === 1,
  };
}
