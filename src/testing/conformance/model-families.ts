// The families of the model: jobs of several queues, their links, and what the end or the removal of a job means for others. Every
// message takes effect at once.
import assert from 'node:assert/strict';
import { letterId } from '../../job/dead-letter.js';
import type { Origin } from '../../job/origin.js';
import {
  type Instruction,
  isSameJob,
  type JobRef,
  ON_COMPLETION,
  ON_REMOVAL,
  type ParentLink,
  refKey,
} from '../../job/family.js';
import type { Outcome, SettleStatus } from '../../job/outcome.js';
import type { NewJob } from '../../job/record.js';
import type { FinishedState, StoredState } from '../../job/state.js';
import type { AddReply, Link } from '../../store/contract/index.js';

/** A job of the walk. It names its queue and its id. */
export type FamilyJob = NewJob & { id: string; queue: string };

export interface FamilyMember extends JobRef {
  state: StoredState;
  /** True: the job becomes delayed when its children have ended. */
  delayed: boolean;
  priority: number;
  key: string | undefined;
  deadLetter: string | undefined;
  origin: Omit<Origin, 'failedOn'> | undefined;
  parents: ParentLink[];
  links: Map<string, Link>;
  /** The children that doomed the job. Its record names one of them. */
  doomers: Set<string>;
  attempts: number;
  stalls: number;
  /** The result or the reason of the failure. */
  text: string | undefined;
  held?: { session: string; token: string; fence: number };
}

export class ModelFamilies {
  readonly #members = new Map<string, FamilyMember>();
  /** The jobs that the last verb concerned, by `refKey`. */
  readonly touched = new Set<string>();

  find(ref: JobRef): FamilyMember | undefined {
    return this.#members.get(refKey(ref));
  }

  get(ref: JobRef): FamilyMember {
    return this.find(ref) ?? assert.fail(`the model knows no job ${ref.id} in ${ref.queue}`);
  }

  all(): FamilyMember[] {
    return [...this.#members.values()];
  }

  of(queue: string, ...states: StoredState[]): FamilyMember[] {
    return this.all().filter((member) => member.queue === queue && (states.length === 0 || states.includes(member.state)));
  }

  pendingOf({ links }: FamilyMember): Link[] {
    return [...links.values()].filter(({ state }) => state === 'pending');
  }

  hasFailed({ links }: FamilyMember): boolean {
    return [...links.values()].some(({ state }) => state === 'failed');
  }

  /** True if one of the jobs is a parent of the other. */
  areRelated(a: FamilyMember, b: FamilyMember): boolean {
    return a.parents.some((parent) => isSameJob(parent, b)) || b.parents.some((parent) => isSameJob(parent, a));
  }

  /** True if `ancestor` is the job, its parent, a parent of its parent and so on. */
  descends(ref: JobRef, ancestor: JobRef): boolean {
    return isSameJob(ref, ancestor) || (this.find(ref)?.parents ?? []).some((parent) => this.descends(parent, ancestor));
  }

  /** Adds all jobs or none. Returns the replies that the store must give. */
  add(jobs: FamilyJob[]): AddReply[] {
    const refusals = jobs.map((job, index) => this.#refusal(job, jobs.slice(0, index)));
    if (refusals.some((status) => status !== undefined))
      return jobs.map(({ id }, index) => ({ id, status: refusals[index] ?? 'refused' }));
    const replies = jobs.map((job): AddReply => {
      const isKnown = this.find(job) !== undefined;
      if (!isKnown) this.#enter(job);
      return { id: job.id, status: isKnown ? 'duplicate' : 'added' };
    });
    const adopted = jobs.flatMap((job) =>
      (job.parents ?? []).filter((parent) => this.#link(job, parent)).map((parent) => ({ job, parent })),
    );
    for (const { job, parent } of adopted) this.#apply(this.get(job), parent);
    for (const job of jobs) this.#releaseIfNone(this.get(job));
    return replies;
  }

  /** Returns the status of an outcome, and applies it if the status is done. */
  settle(member: FamilyMember, outcome: Outcome): SettleStatus {
    const refusal = this.#refused(member, outcome);
    if (refusal !== undefined) return refusal;
    const fence = member.held?.fence ?? assert.fail(`${member.id} is locked`);
    delete member.held;
    this.#touch(member);
    if (outcome.kind === 'completed' || outcome.kind === 'failed') {
      member.attempts += 1;
      this.end(member, outcome.kind, outcome.kind === 'completed' ? outcome.value : outcome.reason, fence);
      if (outcome.keep.count === 0) this.remove(member);
    } else if (outcome.kind === 'children') {
      Object.assign(member, { state: 'waiting-children', delayed: false });
    } else {
      member.state = 'delayMs' in outcome && outcome.delayMs > 0 ? 'delayed' : 'waiting';
      if (outcome.kind === 'retry') member.attempts += 1;
    }
    return 'done';
  }

  /** Finishes a job. */
  end(member: FamilyMember, state: FinishedState, text: string, fence: number): void {
    this.#touch(member);
    Object.assign(member, { state, text });
    member.doomers.clear();
    if (state === 'failed') this.#sendLetter(member, text, fence);
    for (const parent of member.parents) this.#apply(member, parent);
  }

  /** A finished job waits again. */
  reopen(member: FamilyMember): void {
    this.#touch(member);
    Object.assign(member, { state: 'waiting', text: undefined });
    for (const parent of member.parents) {
      const links = this.find(parent)?.links;
      if (links?.has(refKey(member)) === true) links.set(refKey(member), { child: refOf(member), state: 'pending' });
    }
  }

  remove(member: FamilyMember, { children = false } = {}): void {
    this.#touch(member);
    this.#members.delete(refKey(member));
    for (const parent of member.parents) this.#deliver(parent, member, ON_REMOVAL);
    if (!children) return;
    for (const { child } of member.links.values()) {
      const job = this.find(child);
      if (job === undefined) continue;
      this.#part(job, member);
      if (job.parents.length === 0 && job.held === undefined) this.remove(job, { children });
    }
  }

  /** Returns the parents in the same queue that wait for this job alone. */
  waitingForThisAlone(member: FamilyMember): FamilyMember[] {
    return member.parents.flatMap((ref) => {
      const parent = ref.queue === member.queue ? this.find(ref) : undefined;
      if (parent?.state !== 'waiting-children') return [];
      const [first, ...others] = this.pendingOf(parent);
      return first !== undefined && others.length === 0 && isSameJob(first.child, member) ? [parent] : [];
    });
  }

  unlink(member: FamilyMember, child: JobRef): boolean {
    if (member.links.get(refKey(child))?.state !== 'pending') return false;
    const job = this.find(child);
    if (job !== undefined) this.#part(job, member);
    this.#deliver(member, child, ON_REMOVAL);
    return true;
  }

  /** Sends a letter back. */
  send(letter: FamilyMember, to: string): void {
    const { id, priority, lockKey: key, deadLetter } = letter.origin ?? assert.fail(`${letter.id} is a letter`);
    this.remove(letter);
    const ref = { queue: to, id: this.find({ queue: to, id }) === undefined ? id : letter.id };
    this.#put(ref, { priority, key, deadLetter });
  }

  #refusal(job: FamilyJob, before: FamilyJob[]): 'noParent' | 'otherParent' | undefined {
    const { parents = [], shares } = job;
    const exists = (ref: JobRef): boolean => this.find(ref) !== undefined;
    if (parents.some((parent) => !exists(parent) && !before.some((one) => isSameJob(one, parent)))) return 'noParent';
    const known = this.find(job);
    if (known === undefined || parents.length === 0 || shares === true) return undefined;
    const others = known.parents.filter((parent) => !parents.some((given) => isSameJob(given, parent)));
    return others.some(exists) ? 'otherParent' : undefined;
  }

  #refused({ links, ...member }: FamilyMember, outcome: Outcome): SettleStatus | undefined {
    if (outcome.kind !== 'completed' && outcome.kind !== 'children') return undefined;
    const all = [...links.values()];
    if (all.some(({ state }) => state === 'failed')) return 'unsuccessful';
    const pending = all.filter(({ state }) => state === 'pending');
    if (outcome.kind === 'completed') return pending.length > 0 ? 'pending' : undefined;
    const { child } = outcome;
    const waits = child === undefined ? pending.length > 0 : pending.some((one) => isSameJob(one.child, child));
    assert.equal(member.state, 'active');
    return waits ? undefined : 'ready';
  }

  #enter({ queue, id, priority, delayMs, lockKey: key, deadLetter, waitsForChildren }: FamilyJob): void {
    const member = this.#put({ queue, id }, { priority, key, deadLetter });
    member.delayed = delayMs > 0;
    if (waitsForChildren === true) member.state = 'waiting-children';
    else if (member.delayed) member.state = 'delayed';
  }

  #put(ref: JobRef, fields: Pick<FamilyMember, 'priority' | 'key' | 'deadLetter'>): FamilyMember {
    assert(this.find(ref) === undefined, `${ref.id} is new`);
    const fresh = { state: 'waiting' as const, delayed: false, attempts: 0, stalls: 0, text: undefined, origin: undefined };
    const member = { ...refOf(ref), ...fresh, ...fields, parents: [], links: new Map(), doomers: new Set<string>() };
    this.#members.set(refKey(ref), member);
    this.#touch(member);
    return member;
  }

  /** Returns true if the link is new. */
  #link(job: FamilyJob, parent: ParentLink): boolean {
    const member = this.get(job);
    if (!member.parents.some((known) => isSameJob(known, parent))) member.parents.push(parent);
    const { links } = this.get(parent);
    this.#touch(parent);
    if (links.has(refKey(member))) return false;
    links.set(refKey(member), { child: refOf(member), state: 'pending' });
    return true;
  }

  /** Reports to a parent how a finished job ended. */
  #apply(member: FamilyMember, parent: ParentLink): void {
    const { state, text } = member;
    if (state === 'completed') this.#deliver(parent, member, ON_COMPLETION, text);
    else if (state === 'failed' && parent.onFailure !== undefined) this.#deliver(parent, member, parent.onFailure, text);
  }

  #deliver(ref: JobRef, child: JobRef, { link, release, doom }: Instruction, text?: string): void {
    this.touched.add(refKey(ref));
    const parent = this.find(ref);
    const known = parent?.links.get(refKey(child));
    if (parent === undefined || known === undefined) return;
    if (link !== 'removed')
      parent.links.set(refKey(child), { child: refOf(child), state: link, ...(text !== undefined && { text }) });
    else if (known.state === 'pending') parent.links.delete(refKey(child));
    else return;
    if (doom === true) this.#doom(parent, child);
    else if (release === 'whenNone') this.#releaseIfNone(parent);
    else if (parent.state === 'waiting-children') this.#release(parent);
  }

  #doom(parent: FamilyMember, child: JobRef): void {
    if (!['waiting', 'delayed', 'waiting-children'].includes(parent.state)) return;
    parent.doomers.add(refKey(child));
    parent.state = 'waiting';
  }

  #releaseIfNone(parent: FamilyMember): void {
    if (parent.state === 'waiting-children' && this.pendingOf(parent).length === 0) this.#release(parent);
  }

  #release(parent: FamilyMember): void {
    parent.state = parent.delayed ? 'delayed' : 'waiting';
  }

  #part(child: FamilyMember, parent: JobRef): void {
    this.#touch(child);
    child.parents = child.parents.filter((known) => !isSameJob(known, parent));
  }

  #sendLetter({ queue, id, priority, key, deadLetter, attempts }: FamilyMember, failedReason: string, fence: number): void {
    if (deadLetter === undefined) return;
    const own = { queue, id, failedReason, attemptsMade: attempts, priority, deadLetter };
    const origin = key === undefined ? own : { ...own, lockKey: key };
    const letter = this.#put(
      { queue: deadLetter, id: letterId({ ...origin, failedOn: 0 }, fence) },
      { priority: 0, key: undefined, deadLetter: undefined },
    );
    letter.origin = origin;
  }

  #touch(ref: JobRef): void {
    this.touched.add(refKey(ref));
  }
}

function refOf({ queue, id }: JobRef): JobRef {
  return { queue, id };
}
