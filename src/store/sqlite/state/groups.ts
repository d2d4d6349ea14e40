// The groups of a queue and their line (table `groups`). The rule of turns is in contract/groups.ts; turns.ts takes the turns of a claim.
// The jobs of a group wait in state behind, which claims in order never read. Active jobs are counted when their number is needed: an
// index has them, and no process of an older version can leave a wrong number behind.
// A verb calls `QueueState.touchGroup` when a job of a group has begun to wait or has left active. `arrange` puts the touched groups in
// their places, before the next claim and before the commit.
import type { RateLimit } from '../../../job/rate.js';
import type { GroupInfo, GroupQuery, GroupRules, GroupSettings, GroupsFound } from '../../contract/index.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import { Group, type GroupRow, PLACE } from './group.js';
import { limitedMs, useRoom } from './rate-limit.js';
import type { QueueRules, Rules } from './rules.js';
import { STATE } from './schema.js';
import type { Moment } from './clock.js';

interface TurnNumbers {
  /** The number of the last turn. */
  last: number;
  /** The number of the last turn of a job without a group. */
  plain: number;
}

/** The part of a queue's row that groups need. */
export interface Grouped {
  readonly queue: number;
  rules: Readonly<QueueRules>;
  /** The groups to arrange. True: a job of the group has begun to wait. */
  readonly touchedGroups: Map<string, boolean>;
  /** Undefined until they are read. */
  turns: TurnNumbers | undefined;
}

export class Groups {
  readonly #rules: Rules;
  readonly #find: Statement<GroupRow>;
  readonly #set: Statement;
  readonly #delete: Statement;
  readonly #all: Statement<GroupRow>;
  readonly #page: Statement<GroupRow>;
  readonly #jobs: Statement<[count: number]>;
  readonly #anyReady: Statement<[number]>;
  readonly #anySession: Statement<[number]>;
  readonly #nextRest: Statement<[restsUntil: number]>;
  readonly #readTurns: Statement<[last: number, plain: number]>;
  readonly #setTurns: Statement;

  constructor(db: Database, rules: Rules) {
    this.#rules = rules;
    this.#find = sql(db, 'find-group', 'queue key');
    const values = 'key number paused maxActive rateMax rateMs limitedUntil windowEnds windowUsed';
    this.#set = sql(db, 'set-group', `queue ${values} place restsUntil`);
    this.#delete = sql(db, 'delete-group', 'queue key');
    this.#all = sql(db, 'list-groups', 'queue');
    this.#page = sql(db, 'page-of-groups', 'queue after count');
    this.#jobs = sql(db, 'count-of-group', 'queue group state count');
    this.#anyReady = sql(db, 'any-group-ready', 'queue now');
    this.#anySession = sql(db, 'any-session', 'queue');
    this.#nextRest = sql(db, 'next-rest', 'queue now');
    this.#readTurns = sql(db, 'read-turns', 'queue');
    this.#setTurns = sql(db, 'set-turns', 'queue last plain');
  }

  /** Call it when a job of a group is added. */
  begin(queue: Grouped): void {
    if (queue.rules.groups === undefined) this.#rules.set(queue, { groups: {} });
  }

  arrange(queue: Grouped, now: number): void {
    for (const [key, waits] of queue.touchedGroups) {
      const group = this.#get(queue, key);
      if (waits) group.number ??= this.turnsOf(queue).last;
      this.save(queue, group, now);
    }
    queue.touchedGroups.clear();
  }

  /** Returns whether a claim in turn may find a job of a group. */
  anyReady({ queue, rules }: Grouped, now: number): boolean {
    return rules.groups !== undefined && this.#anyReady.get(queue, now) !== undefined;
  }

  /** Returns the moment at which time alone lets a waiting job be claimed. */
  restEndsAt({ queue, rules }: Grouped, now: number): number | undefined {
    return rules.groups === undefined ? undefined : this.#nextRest.get(queue, now)?.[0];
  }

  /** Returns whether a claim by id may take a job of the group. `taken`: jobs of the group that the claim has taken already. */
  mayTake(queue: Grouped, key: string, taken: number): boolean {
    const group = this.#get(queue, key);
    return this.hasPlace(queue, group, this.countActive(queue, group) + taken);
  }

  /** Counts a claim by id in the window of the group. */
  use(transaction: Moment, queue: Grouped, key: string): void {
    const group = this.#get(queue, key);
    useRoom(group, 1, this.rateOf(queue, group), transaction);
    this.save(queue, group, transaction.now);
  }

  turnsOf(queue: Grouped): TurnNumbers {
    if (queue.turns !== undefined) return queue.turns;
    const [last, plain] = this.#readTurns.get(queue.queue) ?? [0, 0];
    queue.turns = { last, plain };
    return queue.turns;
  }

  saveTurns(queue: Grouped): void {
    const { last, plain } = this.turnsOf(queue);
    this.#setTurns.run(queue.queue, last, plain);
  }

  rateOf(queue: Grouped, group: Group): RateLimit | undefined {
    return group.rate ?? rulesOf(queue).rate;
  }

  /** Counts the active jobs of a group, as far as its limit needs them. */
  countActive(queue: Grouped, group: Group): number {
    const most = group.maxActive ?? rulesOf(queue).maxActive;
    return most === undefined ? 0 : this.#count(queue, group.key, STATE.active, most);
  }

  hasPlace(queue: Grouped, group: Group, active: number): boolean {
    return !group.paused && active < (group.maxActive ?? rulesOf(queue).maxActive ?? Number.POSITIVE_INFINITY);
  }

  /** Writes a group with its place, or deletes it. */
  save(queue: Grouped, group: Group, now: number, active = this.countActive(queue, group)): void {
    const rest = limitedMs(group, this.rateOf(queue, group), now);
    const place =
      group.number === undefined ? this.#placeOutOfLine(queue, group, active) : this.#placeInLine(queue, group, active, rest);
    if (place === PLACE.idle && Math.max(group.limitedUntil, group.windowEnds) <= now) this.#delete.run(queue.queue, group.key);
    else this.#set.run(queue.queue, ...group.row, place, now + rest);
  }

  setRules(queue: Grouped, rules: GroupRules | null, now: number): void {
    const before = JSON.stringify(rulesOf(queue));
    this.#rules.set(queue, { groups: { ...rules } });
    // Workers set the same rules again when they start.
    if (JSON.stringify(rulesOf(queue)) !== before) this.#saveAll(queue, now, () => {});
  }

  set(transaction: Moment, queue: Grouped, settings: GroupSettings): void {
    this.begin(queue);
    const group = this.#get(queue, settings.key);
    group.set(settings, transaction);
    this.save(queue, group, transaction.now);
  }

  /** Forgets all settings, blocks, windows and turns. The limits of all groups stay while a session is open. */
  forgetAll(queue: Grouped, now: number): void {
    if (queue.rules.groups === undefined) return;
    this.arrange(queue, now);
    if (this.#anySession.get(queue.queue) === undefined) this.#rules.set(queue, { groups: {} });
    queue.turns = { last: 0, plain: 0 };
    this.saveTurns(queue);
    this.#saveAll(queue, now, (group) => {
      group.forgetSettings();
      if (group.number !== undefined) group.number = this.#count(queue, group.key, STATE.behind, 1) > 0 ? 0 : undefined;
    });
  }

  /** Counts the waiting jobs of a group. */
  waiting(queue: Grouped, key: string): number {
    return this.#count(queue, key, STATE.behind);
  }

  find(queue: Grouped, query: GroupQuery, now: number): GroupsFound {
    const rules = rulesOf(queue);
    const groups =
      'keys' in query
        ? query.keys.map((key) => ({ ...this.#info(queue, this.#get(queue, key), now), waiting: this.waiting(queue, key) }))
        : this.#page.all(queue.queue, query.after ?? '', query.limit).map((row) => this.#info(queue, Group.of(row), now));
    return Object.keys(rules).length > 0 ? { rules, groups } : { groups };
  }

  #info(queue: Grouped, group: Group, now: number): GroupInfo {
    const limited = limitedMs(group, this.rateOf(queue, group), now);
    const info = group.info(this.#count(queue, group.key, STATE.active));
    return limited > 0 ? { ...info, limitedMs: limited } : info;
  }

  #get(queue: Grouped, key: string): Group {
    const row = this.#find.get(queue.queue, key);
    return row === undefined ? new Group(key) : Group.of(row);
  }

  #placeInLine(queue: Grouped, group: Group, active: number, rest: number): number {
    if (!this.hasPlace(queue, group, active)) return PLACE.full;
    return rest > 0 ? PLACE.resting : PLACE.ring;
  }

  #placeOutOfLine(queue: Grouped, group: Group, active: number): number {
    const isKept = group.hasSettings || active > 0 || this.#count(queue, group.key, STATE.active, 1) > 0;
    return isKept ? PLACE.kept : PLACE.idle;
  }

  #count({ queue }: Grouped, key: string, state: number, most = -1): number {
    return this.#jobs.get(queue, key, state, most)?.[0] ?? 0;
  }

  #saveAll(queue: Grouped, now: number, change: (group: Group) => void): void {
    for (const row of this.#all.all(queue.queue)) {
      const group = Group.of(row);
      change(group);
      this.save(queue, group, now);
    }
  }
}

function rulesOf({ rules }: Grouped): GroupRules {
  return rules.groups ?? {};
}
