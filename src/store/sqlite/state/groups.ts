// The groups of a queue and their line (table `groups`). The rule of turns is in contract/groups.ts; turns.ts takes the turns of a claim.
// The jobs of a group wait in state behind, which claims in order never read. Active jobs are counted when their number is needed: an
// index has them, so no number can be wrong.
// A verb calls `QueueState.touchGroup` when a job of a group has begun to wait or has left active. `arrange` puts the touched groups in
// their places, before the next claim and before the commit.
// New limits for all groups are written to the queue alone, because a queue may have many groups. Claims check the limits of each group
// that they find in the ring. A group that a limit of all groups keeps from the ring has this limit in its row (`level`). So a claim finds
// the groups that a higher limit may let in, and looks at some of them again.
import type { RateLimit } from '../../../job/rate.js';
import type { GroupInfo, GroupQuery, GroupRules, GroupSettings, GroupsFound } from '../../contract/index.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import { Group, type GroupRow, PLACE } from './group.js';
import { limitedMs } from './rate-limit.js';
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

/** Rests that one claim ends at most. If many rests end at once, ending all of them would hold the write lock for too long. */
const RESTS_AT_ONCE = 500;
/** Groups that one step of `forget` looks at. */
const FORGOTTEN_AT_ONCE = 200;

export class Groups {
  readonly #rules: Rules;
  readonly #find: Statement<GroupRow>;
  readonly #set: Statement;
  readonly #delete: Statement;
  readonly #place: Statement<[place: number]>;
  readonly #move: Statement;
  readonly #renumber: Statement;
  readonly #page: Statement<GroupRow>;
  readonly #chunk: Statement<[last: string | null, count: number]>;
  readonly #deleteEmpty: Statement;
  readonly #range: Statement<GroupRow>;
  readonly #jobs: Statement<[count: number]>;
  readonly #anyReady: Statement<[number]>;
  readonly #anySession: Statement<[number]>;
  readonly #aside: Statement<[restEnded: number, full: number | null, used: number | null]>;
  readonly #nextLevel: Statement<[number | null]>;
  readonly #endRests: Statement;
  readonly #lookAgain: Statement;
  readonly #nextRest: Statement<[restsUntil: number]>;
  readonly #readTurns: Statement<[last: number, plain: number]>;
  readonly #setTurns: Statement;

  constructor(db: Database, rules: Rules) {
    this.#rules = rules;
    this.#find = sql(db, 'find-group', 'queue key');
    const values = 'key number paused maxActive rateMax rateMs limitedUntil windowEnds windowUsed';
    this.#set = sql(db, 'set-group', `queue ${values} place restsUntil level`);
    this.#delete = sql(db, 'delete-group', 'queue key');
    this.#place = sql(db, 'place-of-group', 'queue key');
    this.#move = sql(db, 'move-group', 'number place restsUntil level queue key');
    this.#renumber = sql(db, 'renumber-group', 'number queue key');
    this.#page = sql(db, 'page-of-groups', 'queue after count');
    this.#chunk = sql(db, 'chunk-of-groups', 'queue after count');
    this.#deleteEmpty = sql(db, 'delete-empty-groups', 'queue after last');
    this.#range = sql(db, 'list-groups', 'queue after last');
    this.#jobs = sql(db, 'count-of-group', 'queue group state count');
    this.#anyReady = sql(db, 'any-group-ready', 'queue now most max');
    this.#anySession = sql(db, 'any-session', 'queue');
    this.#aside = sql(db, 'groups-aside', 'queue now most max');
    this.#nextLevel = sql(db, 'next-level', 'queue place level limit');
    this.#endRests = sql(db, 'end-rests', 'queue now count');
    this.#lookAgain = sql(db, 'look-again', 'queue place level count');
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
      const place = this.#place.get(queue.queue, key)?.[0];
      // A job that begins to wait or leaves active takes no room from its group.
      if (place === PLACE.ring || place === PLACE.resting) continue;
      const group = this.#get(queue, key);
      if (waits) group.number ??= this.turnsOf(queue).last;
      this.save(queue, group, now);
    }
    queue.touchedGroups.clear();
  }

  /** Returns whether a claim in turn may find a job of a group. */
  anyReady(queue: Grouped, now: number): boolean {
    if (queue.rules.groups === undefined) return false;
    const { most, max } = limitsOf(queue);
    return this.#anyReady.get(queue.queue, now, most, max) !== undefined;
  }

  /**
   * Lets groups back into the ring whose rest is over, or whose limit is higher now: the first `count` groups of each earlier limit. So a
   * claim that visits no more groups than that finds all of them in their order. Returns whether further rests are over.
   */
  letBack(queue: Grouped, count: number, now: number): boolean {
    const { most, max } = limitsOf(queue);
    const [restEnded = 0, full = null, used = null] = this.#aside.get(queue.queue, now, most, max) ?? [];
    this.#lookAtLevels(queue, PLACE.full, full, most, count);
    this.#lookAtLevels(queue, PLACE.resting, used, max, count);
    return restEnded === 1 && this.#endRests.run(queue.queue, now, RESTS_AT_ONCE) === RESTS_AT_ONCE;
  }

  #lookAtLevels({ queue }: Grouped, place: number, lowest: number | null, limit: number, count: number): void {
    for (let level = lowest; level !== null; level = this.#nextLevel.get(queue, place, level, limit)?.[0] ?? null)
      this.#lookAgain.run(queue, place, level, count);
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
    group.use(this.rateOf(queue, group), transaction);
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

  /** Returns whether a claim in turn may take a job of the group. */
  hasRoom(queue: Grouped, group: Group, active: number, now: number): boolean {
    return this.hasPlace(queue, group, active) && limitedMs(group, this.rateOf(queue, group), now) === 0;
  }

  /** Writes a group with its place, or deletes it. */
  save(queue: Grouped, group: Group, now: number, active = this.countActive(queue, group)): void {
    const rest = limitedMs(group, this.rateOf(queue, group), now);
    const place =
      group.number === undefined ? this.#placeOutOfLine(queue, group, active) : this.#placeInLine(queue, group, active, rest);
    if (place === PLACE.idle && Math.max(group.limitedUntil, group.windowEnds) <= now) this.#delete.run(queue.queue, group.key);
    else this.#write(queue, group, place, now + rest, now);
  }

  #write(queue: Grouped, group: Group, place: number, restsUntil: number, now: number): void {
    if (group.isWritten && group.place === PLACE.ring && place === PLACE.ring) {
      this.#renumber.run(group.number ?? 0, queue.queue, group.key);
      return;
    }
    const level = this.#levelOf(queue, group, place, now);
    if (group.isWritten) this.#move.run(group.number ?? null, place, restsUntil, level, queue.queue, group.key);
    else this.#set.run(queue.queue, ...group.row, place, restsUntil, level);
  }

  setRules(queue: Grouped, rules: GroupRules | null): void {
    this.#rules.set(queue, { groups: { ...rules } });
  }

  set(transaction: Moment, queue: Grouped, settings: GroupSettings): void {
    this.begin(queue);
    const group = this.#get(queue, settings.key);
    group.set(settings, transaction);
    this.save(queue, group, transaction.now);
  }

  /**
   * Forgets settings, blocks, windows and turns, of at most FORGOTTEN_AT_ONCE groups, from the first one after a key on. Returns the key
   * after which the next call goes on; undefined at the end. The limits of all groups stay while a session is open.
   */
  forgetSome(queue: Grouped, after: string, now: number): string | undefined {
    if (queue.rules.groups === undefined) return undefined;
    this.arrange(queue, now);
    if (this.#anySession.get(queue.queue) === undefined) this.#rules.set(queue, { groups: {} });
    // The numbers start again before the first group gets one of them. Otherwise a group would have a number that no turn reaches soon.
    if (after === '') {
      queue.turns = { last: 0, plain: 0 };
      this.saveTurns(queue);
    }
    const [last, count] = this.#chunk.get(queue.queue, after, FORGOTTEN_AT_ONCE) ?? [null, 0];
    if (last === null) return undefined;
    this.#deleteEmpty.run(queue.queue, after, last);
    for (const row of this.#range.all(queue.queue, after, last)) this.#forget(queue, Group.of(row), now);
    return count < FORGOTTEN_AT_ONCE ? undefined : last;
  }

  #forget(queue: Grouped, group: Group, now: number): void {
    group.forgetSettings();
    if (group.number !== undefined) group.number = this.#count(queue, group.key, STATE.behind, 1) > 0 ? 0 : undefined;
    this.save(queue, group, now);
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

  /** Returns the limit of all groups that keeps a group from the ring. */
  #levelOf(queue: Grouped, group: Group, place: number, now: number): number | null {
    const { maxActive, rate } = rulesOf(queue);
    if (place === PLACE.full) return group.paused || group.maxActive !== undefined ? null : (maxActive ?? null);
    const isUsed = place === PLACE.resting && group.rate === undefined && group.windowEnds > now;
    return isUsed && rate !== undefined && group.windowUsed >= rate.max ? rate.max : null;
  }
}

/** The limits of all groups as numbers. */
function limitsOf(queue: Grouped): { most: number; max: number } {
  const { maxActive: most = Number.MAX_VALUE, rate: { max } = { max: Number.MAX_VALUE } } = rulesOf(queue);
  return { most, max };
}

/** Returns the limits of all groups. */
export function rulesOf({ rules }: Grouped): GroupRules {
  return rules.groups ?? {};
}
