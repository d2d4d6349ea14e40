// Adds jobs with parents or children, in any queues, as a whole or not at all. The steps in the queue of the call are one script
// (`add-family` in lua/families.lua). Steps in other queues follow as messages, after the links to their jobs are written: a parent never
// misses a child.
import { randomBytes, randomUUID } from 'node:crypto';
import { type JobRef, type ParentLink, refKey } from '../../job/family.js';
import type { NewJob } from '../../job/record.js';
import { Turns } from '../../runtime/turns.js';
import type { AddReply, Call } from '../contract/index.js';
import { readExtras } from '../marks.js';
import { flagsOf, readAdded } from './add.js';
import type { Argument } from './driver/driver.js';
import { extraText, jobText } from './record.js';
import type { Engine } from './driver/engine.js';
import type { Pair, Routes } from './state/relays.js';

/** Steps that one script takes. The queue sends the rest to itself. */
const STEPS_AT_ONCE = 100;
/** Jobs that one script looks for. */
const FOUND_AT_ONCE = 500;
const LINK = 'k';
const NO_PARENT = 'p';
const OTHER_PARENT = 'q';
const NOT_REFUSED = '-';
/** The script asks for jobs of other queues. */
const ASKS = '?';

interface Step {
  queue: string;
  /** Steps that must be taken before, by `gives`. A name without a step is there already. */
  needs: string[];
  gives: string;
  texts: Argument[];
  /** The step belongs to a job whose id the queue of the call counts up, so it is not put off. */
  isNow?: boolean;
  /** The job that the step adds. */
  member?: Member;
}

/** The steps that one script takes, and the messages that it sends after them. Those to one queue arrive in their order. */
interface Bite {
  steps: Step[];
  sends: [queue: string, bites: Bite[]][];
}

interface Member {
  ref: JobRef;
  job: NewJob;
  parents: ParentLink[];
  /** False if the queue of the call counts the id up. */
  hasId: boolean;
}

export function isOfFamily({ queue, parents, waitsForChildren }: NewJob): boolean {
  return queue !== undefined || parents !== undefined || waitsForChildren === true;
}

export async function addFamily(engine: Engine, queue: string, jobs: NewJob[], call: Call): Promise<AddReply[]> {
  const turns = new Turns();
  const pause = async (): Promise<void> => {
    if (turns.isOver) await turns.next();
  };
  const members = membersOf(queue, jobs);
  await pause();
  const known = new Known(engine);
  const allSteps = await stepsOf(members, turns);
  await pause();
  const [first = { steps: [], sends: [] }, ...rest] = planOf(queue, allSteps);
  first.sends.push([queue, rest]);
  await pause();
  const here = new Set(first.steps.map(({ gives }) => gives));
  const away = members.filter(({ ref }) => !here.has(refKey(ref)));
  // If the script does not take all steps in its queue, it does not look for all parents there.
  await known.find([
    ...away.map(({ ref }) => ref),
    ...outerParents(members).filter((parent) => rest.length > 0 || parent.queue !== queue),
  ]);
  await known.find(away.flatMap((member) => known.otherParents(member)));
  /** Jobs of other queues that the script has asked for. */
  const asked: JobRef[] = [];
  for (;;) {
    for (const { member, texts } of allSteps) if (member !== undefined) texts[texts.length - 1] = modeOf(member, known);
    const head = headOf(call, queue, members, here, known, asked.length);
    await pause();
    const steps = textsOf(first);
    await pause();
    const args = [...head, ...known.texts(asked), ...steps];
    const reply = String(await engine.run('add-family', queue, args));
    if (!reply.startsWith(ASKS))
      return finish(engine, queue, members, reply, { levels: levelsOf(queue, [first]), steps: allSteps.length });
    asked.push(...reply.slice(1).split('\0').map(readRef));
    await known.find(asked);
  }
}

/** Returns the arguments of `add-family` in lua/families.lua up to the known jobs. `here`: the jobs that the script adds. */
function headOf(
  { caller, seq }: Call,
  queue: string,
  members: Member[],
  here: Set<string>,
  known: Known,
  knownSize: number,
): Argument[] {
  const before = new Set<string>();
  let refusals = '';
  let text = '';
  const texts: Argument[] = [];
  members.forEach((member, index) => {
    const key = refKey(member.ref);
    const isHere = here.has(key);
    refusals += known.refusalOf(member, before, isHere);
    if (member.hasId) before.add(key);
    if (index > 0) text += '\0';
    if (isHere) {
      texts.push(text, index + 1);
      text = '';
    } else text += `${known.exists(member.ref) ? 'd' : 'n'}${member.ref.id}`;
  });
  texts.push(text);
  return [caller, seq, queue, refusals, (texts.length - 1) / 2, knownSize, ...texts];
}

async function finish(engine: Engine, queue: string, members: Member[], reply: string, routes: Routes): Promise<AddReply[]> {
  if (/^[nd]/.test(reply)) engine.registry.ensure(queue);
  const replies = await readAdded(engine, queue, reply, routes);
  for (const name of new Set([queue, ...members.map(({ ref }) => ref.queue)])) engine.wake.sent(name);
  return replies;
}

function membersOf(queue: string, jobs: NewJob[]): Member[] {
  const steps = jobs.reduce((sum, { parents = [] }) => sum + 1 + parents.length, 0);
  const isMuch = jobs.length > STEPS_AT_ONCE || steps > 2 * STEPS_AT_ONCE;
  return jobs.map((job) => memberOf(queue, job, isMuch));
}

function memberOf(queue: string, job: NewJob, isOfMany: boolean): Member {
  const parents = job.parents ?? [];
  const isFar = parents.some((parent) => parent.queue !== queue);
  // The id of a job whose links lie in other queues is known before these are written. So is that of a job whose steps are put off: one
  // script cannot count up the ids of many jobs, because it would have to add all of them.
  const id = job.id ?? (isFar || isOfMany || job.queue !== undefined ? randomUUID() : undefined);
  // A job without an id gets a name that no other job has, for the order of the steps.
  return { ref: { queue: job.queue ?? queue, id: id ?? `\n${randomUUID()}` }, job, parents, hasId: id !== undefined };
}

/** Returns the parents that are not in the call. */
function outerParents(members: Member[]): JobRef[] {
  const own = new Set(members.map(({ ref }) => refKey(ref)));
  return members.flatMap(({ parents }) => parents.filter((parent) => !own.has(refKey(parent))));
}

/**
 * Returns the steps of all jobs: the links of a job, then the job. The links of a job with several parents follow these at once: a parent
 * whose links come in a later bite has to be held.
 */
async function stepsOf(members: Member[], turns: Turns): Promise<Step[]> {
  const bond = randomBytes(9).toString('base64url');
  const before = new Map<string, Step[]>();
  const lists: Step[][] = [];
  for (const [index, member] of members.entries()) {
    if (turns.isOver) await turns.next();
    const { ref, job, parents, hasId } = member;
    const id = hasId ? ref.id : '';
    const list: Step[] = [];
    const links = parents.map((parent): Step => {
      const texts = [LINK, parent.id, ref.queue, id, bond, index + 1];
      const step = {
        queue: parent.queue,
        needs: [refKey(parent)],
        gives: `${refKey(ref)}\n${refKey(parent)}`,
        texts,
        isNow: !hasId,
      };
      ((parents.length > 1 && before.get(refKey(parent))) || list).push(step);
      return step;
    });
    const texts = ['e', id, flagsOf(job), jobText(job), extraText(withBonds(job, bond)), ''];
    list.push({ queue: ref.queue, needs: links.map(({ gives }) => gives), gives: refKey(ref), texts, isNow: !hasId, member });
    if (!before.has(refKey(ref))) before.set(refKey(ref), list);
    lists.push(list);
  }
  return lists.flat();
}

function modeOf(member: Member, known: Known): string {
  const { shares, waitsForChildren } = member.job;
  return `${shares === true ? 1 : 0}${waitsForChildren === true ? 1 : 0}${known.goneParents(member).join('\n\n')}`;
}

/** The stored parents also hold their bonds: see lua/families.lua. */
function withBonds(job: NewJob, bond: string): NewJob {
  if (job.parents === undefined) return job;
  return { ...job, parents: job.parents.map((parent) => Object.assign({ ...parent }, { n: bond })) };
}

/** Takes the steps that are possible in a queue in bites. The others go to their queues with the bite that makes them possible. */
function planOf(queue: string, steps: Step[]): Bite[] {
  const most = steps.some(({ isNow }) => isNow === true) ? Number.POSITIVE_INFINITY : STEPS_AT_ONCE;
  const open = new Set(steps.map(({ gives }) => gives));
  const places = new Map<string, number>();
  const left: Step[] = [];
  let last: Bite = { steps: [], sends: [] };
  const bites = [last];
  for (const step of steps) {
    if (step.queue !== queue || step.needs.some((need) => open.has(need))) {
      left.push(step);
      continue;
    }
    if (last.steps.length === most) bites.push((last = { steps: [], sends: [] }));
    last.steps.push(step);
    open.delete(step.gives);
    places.set(step.gives, bites.length - 1);
  }
  holdParents(queue, bites, places);
  const lists = new Map<string, { bite: Bite; queue: string; steps: Step[] }>();
  for (const part of connected(left)) {
    const to = part[0]?.queue ?? '';
    let place = 0;
    for (const { needs } of part) for (const need of needs) place = Math.max(place, places.get(need) ?? 0);
    const list = lists.get(`${place}\n${to}`) ?? { bite: bites[place] as Bite, queue: to, steps: [] };
    for (const step of part) list.steps.push(step);
    lists.set(`${place}\n${to}`, list);
  }
  for (const list of lists.values()) list.bite.sends.push([list.queue, planOf(list.queue, list.steps)]);
  return bites;
}

/** Returns the ways of the messages: first those that the script sends, then those that these send, and so on. */
function levelsOf(queue: string, bites: Bite[]): Pair[][] {
  const levels: Pair[][] = [];
  for (let from = new Map([[queue, bites]]); from.size > 0; ) {
    const pairs: Pair[] = [];
    const next = new Map<string, Bite[]>();
    for (const [sender, sent] of from) {
      const receivers = new Set<string>();
      for (const [to, list] of sent.flatMap(({ sends }) => sends)) {
        if (list.length === 0) continue;
        receivers.add(to);
        const known = next.get(to);
        if (known === undefined) next.set(to, [...list]);
        else for (const bite of list) known.push(bite);
      }
      for (const to of receivers) pairs.push({ from: sender, to });
    }
    if (pairs.length > 0) levels.push(pairs);
    from = next;
  }
  return levels;
}

/** Holds the parents that later bites link to further children, until the last of these. */
function holdParents(queue: string, bites: Bite[], places: Map<string, number>): void {
  const ends = new Map<string, number>();
  bites.forEach(({ steps }, place) => {
    for (const { texts } of steps) if (texts[0] === LINK) ends.set(String(texts[1]), place);
  });
  for (const [id, end] of ends) {
    const start = places.get(refKey({ queue, id })) ?? 0;
    if (end === start) continue;
    bites[start]?.steps.push({ queue, needs: [], gives: '', texts: ['h', id, '', '', '', ''] });
    bites[end]?.steps.push({ queue, needs: [], gives: '', texts: ['u', id, '', '', '', ''] });
  }
}

/** Splits steps into parts that do not depend on each other, each in the order of the steps. */
function connected(steps: Step[]): Step[][] {
  const numbers = new Map(steps.map(({ gives }, index) => [gives, index]));
  const roots = steps.map((_, index) => index);
  const rootOf = (index: number): number => {
    let root = index;
    while (roots[root] !== root) root = roots[root] as number;
    roots[index] = root;
    return root;
  };
  steps.forEach(({ needs }, index) => {
    for (const need of needs) {
      const other = numbers.get(need);
      if (other !== undefined) roots[rootOf(index)] = rootOf(other);
    }
  });
  const parts = new Map<number, Step[]>();
  steps.forEach((step, index) => {
    const root = rootOf(index);
    const part = parts.get(root);
    if (part === undefined) parts.set(root, [step]);
    else part.push(step);
  });
  return [...parts.values()];
}

function textsOf({ steps, sends }: Bite): Argument[] {
  const texts = steps.flatMap((step) => step.texts);
  for (const [queue, bites] of sends) for (const bite of bites) texts.push('n', queue, messageOf(textsOf(bite)), '', '', '');
  return texts;
}

/** Packs the texts of steps into a message: see `family-steps` in lua/families.lua. */
function messageOf(texts: Argument[]): string {
  const all = texts.map(String);
  return `b\0${all.map((text) => Buffer.byteLength(text)).join(',')}\n${all.join('')}`;
}

/** Jobs of any queue that decide whether the store refuses a call. */
class Known {
  readonly #engine: Engine;
  readonly #found = new Map<string, { parents: ParentLink[] } | undefined>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async find(refs: JobRef[]): Promise<void> {
    const byQueue = new Map<string, string[]>();
    for (const { queue, id } of refs) {
      const ids = byQueue.get(queue);
      if (this.#found.has(refKey({ queue, id }))) continue;
      if (ids === undefined) byQueue.set(queue, [id]);
      else ids.push(id);
    }
    await Promise.all(Array.from(byQueue, ([queue, ids]) => this.#findIn(queue, ids)));
  }

  async #findIn(queue: string, ids: string[]): Promise<void> {
    for (let first = 0; first < ids.length; first += FOUND_AT_ONCE) {
      const part = ids.slice(first, first + FOUND_AT_ONCE);
      const texts = (await this.#engine.run('kinship', queue, part)) as (string | 0)[];
      part.forEach((id, index) => {
        const text = texts[index];
        this.#found.set(refKey({ queue, id }), typeof text === 'string' ? { parents: parentsIn(text) } : undefined);
      });
    }
  }

  exists(ref: JobRef): boolean {
    return this.#found.get(refKey(ref)) !== undefined;
  }

  /** Returns the parents of a job that exists, other than those that it is given. */
  otherParents({ ref, job, parents }: Member): ParentLink[] {
    if (parents.length === 0 || job.shares === true) return [];
    const others = this.#found.get(refKey(ref))?.parents ?? [];
    if (others.length === 0) return [];
    const given = new Set(parents.map(refKey));
    return others.filter((parent) => !given.has(refKey(parent)));
  }

  /** Returns those of its other parents that do not exist. */
  goneParents(member: Member): string[] {
    return this.otherParents(member)
      .filter((parent) => this.#isGone(parent))
      .map(refKey);
  }

  /** True if the store was asked for the job, and the job does not exist. */
  #isGone(ref: JobRef): boolean {
    return this.#found.has(refKey(ref)) && !this.exists(ref);
  }

  /** Jobs of other queues, as `add-family` in lua/families.lua reads them. */
  texts(refs: JobRef[]): string[] {
    return refs.map((ref) => `${this.exists(ref) ? 1 : 0}${refKey(ref)}`);
  }

  /** Returns why the store refuses a job, as far as this is known here. `isHere`: the script looks at its other parents. */
  refusalOf(member: Member, before: Set<string>, isHere: boolean): string {
    const lacks = (parent: JobRef): boolean => !before.has(refKey(parent)) && this.#isGone(parent);
    if (member.parents.some(lacks)) return NO_PARENT;
    return !isHere && this.otherParents(member).some((parent) => this.exists(parent)) ? OTHER_PARENT : NOT_REFUSED;
  }
}

function parentsIn(extra: string): ParentLink[] {
  if (extra === '') return [];
  return readExtras(extra.slice(extra.indexOf(',') + 1)).parents ?? [];
}

function readRef(key: string): JobRef {
  const end = key.indexOf('\n');
  return { queue: key.slice(0, end), id: key.slice(end + 1) };
}
