// Adds jobs with parents or children, in any queues, as a whole or not at all. The steps in the queue of the call are one script
// (lua/add-family.lua). Steps in other queues follow as messages, after the links to their jobs are written: a parent never misses a child.
import { randomBytes, randomUUID } from 'node:crypto';
import { isSameJob, type JobRef, type ParentLink, refKey } from '../../job/family.js';
import type { NewJob } from '../../job/record.js';
import type { AddReply, Call } from '../contract/index.js';
import { readExtras } from '../marks.js';
import { flagsOf, readAdded } from './add.js';
import type { Argument } from './driver/driver.js';
import { extraText, jobText } from './record.js';
import type { Parts } from './state/parts.js';

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

export async function addFamily(parts: Parts, queue: string, jobs: NewJob[], call: Call): Promise<AddReply[]> {
  const members = jobs.map((job) => memberOf(queue, job, jobs.length > STEPS_AT_ONCE));
  const known = new Known(parts);
  const first = stage(queue, stepsOf(members, known));
  const here = new Set(first.taken.map(({ gives }) => gives));
  const away = members.filter(({ ref }) => !here.has(refKey(ref)));
  // If the script does not take all steps in its queue, it does not look for all parents there.
  const isLong = first.later.some(([name]) => name === queue);
  await known.find([
    ...away.map(({ ref }) => ref),
    ...outerParents(members).filter((parent) => isLong || parent.queue !== queue),
  ]);
  await known.find(away.flatMap((member) => known.otherParents(member)));
  /** Jobs of other queues that the script has asked for. */
  const asked: JobRef[] = [];
  for (;;) {
    const steps = textsOf(stage(queue, stepsOf(members, known)));
    const args = [...headOf(call, queue, members, here, known, asked.length), ...known.texts(asked), ...steps];
    const reply = String(await parts.run('add-family', queue, args));
    if (!reply.startsWith(ASKS)) return finish(parts, queue, members, reply);
    asked.push(...reply.slice(1).split('\0').map(readRef));
    await known.find(asked);
  }
}

/** Returns the arguments of lua/add-family.lua up to the known jobs. `here`: the jobs that the script adds. */
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

async function finish(parts: Parts, queue: string, members: Member[], reply: string): Promise<AddReply[]> {
  if (/^[nd]/.test(reply)) parts.registry.ensure(queue);
  const replies = await readAdded(parts, queue, reply);
  for (const name of new Set([queue, ...members.map(({ ref }) => ref.queue)])) parts.wake.sent(name);
  return replies;
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

/** Returns the steps of all jobs: the links of a job, then the job. */
function stepsOf(members: Member[], known: Known): Step[] {
  const bond = randomBytes(9).toString('base64url');
  return members.flatMap((member, index) => {
    const { ref, job, parents, hasId } = member;
    const id = hasId ? ref.id : '';
    const links = parents.map((parent): Step => {
      const texts = [LINK, parent.id, ref.queue, id, bond, index + 1];
      return { queue: parent.queue, needs: [refKey(parent)], gives: `${refKey(ref)}\n${refKey(parent)}`, texts, isNow: !hasId };
    });
    const mode = `${job.shares === true ? 1 : 0}${job.waitsForChildren === true ? 1 : 0}${known.goneParents(member).join('\n\n')}`;
    const texts = ['e', id, flagsOf(job), jobText(job), extraText(withBonds(job, bond)), mode];
    return [...links, { queue: ref.queue, needs: links.map(({ gives }) => gives), gives: refKey(ref), texts, isNow: !hasId }];
  });
}

/** The stored parents also hold their bonds: see lua/shared/family-ends.lua. */
function withBonds(job: NewJob, bond: string): NewJob {
  if (job.parents === undefined) return job;
  return { ...job, parents: job.parents.map((parent) => Object.assign({ ...parent }, { n: bond })) };
}

interface Stage {
  taken: Step[];
  /** Steps that go to other queues. Lists do not depend on each other. */
  later: [queue: string, steps: Step[]][];
}

/** Takes the steps that are possible in a queue now, at most STEPS_AT_ONCE, and groups the others. */
function stage(queue: string, steps: Step[]): Stage {
  const open = new Set(steps.map(({ gives }) => gives));
  const taken: Step[] = [];
  const left: Step[] = [];
  for (const step of steps) {
    const hasRoom = taken.length < STEPS_AT_ONCE || step.isNow === true;
    if (hasRoom && step.queue === queue && step.needs.every((need) => !open.has(need))) {
      taken.push(step);
      open.delete(step.gives);
    } else left.push(step);
  }
  const held = heldParents(queue, taken, left);
  const later = grouped(left);
  if (held.length > 0)
    later.push([queue, held.map((id): Step => ({ queue, needs: [], gives: '', texts: ['u', id, '', '', '', ''] }))]);
  const holds = held.map((id): Step => ({ queue, needs: [], gives: '', texts: ['h', id, '', '', '', ''] }));
  return { taken: [...taken, ...holds], later };
}

/** Returns the parents in a queue that exist now, and that later steps of the same queue link to further children. */
function heldParents(queue: string, taken: Step[], left: Step[]): string[] {
  if (taken.length < STEPS_AT_ONCE) return [];
  const open = new Set(left.map(({ gives }) => gives));
  const links = left.filter(
    (step) => step.queue === queue && step.texts[0] === LINK && step.needs.every((need) => !open.has(need)),
  );
  return [...new Set(links.map(({ texts }) => String(texts[1])))];
}

/** Groups steps into lists that do not depend on each other. The first step of each list is possible in its queue. */
function grouped(steps: Step[]): [queue: string, steps: Step[]][] {
  const lists = new Map<string, Step[][]>();
  for (const part of connected(steps)) {
    const queue = part[0]?.queue ?? '';
    const known = lists.get(queue) ?? [];
    const last = known.at(-1);
    if (last !== undefined && last.length + part.length <= STEPS_AT_ONCE) last.push(...part);
    else known.push([...part]);
    lists.set(queue, known);
  }
  return Array.from(lists).flatMap(([queue, parts]) => parts.map((part): [string, Step[]] => [queue, part]));
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

function textsOf({ taken, later }: Stage): Argument[] {
  const sent = later.flatMap(([queue, steps]): Argument[] => ['n', queue, messageOf(textsOf(stage(queue, steps))), '', '', '']);
  return [...taken.flatMap(({ texts }) => texts), ...sent];
}

/** Packs the texts of steps into a message: see lua/shared/family-steps.lua. */
function messageOf(texts: Argument[]): string {
  const all = texts.map(String);
  return `b\0${all.map((text) => Buffer.byteLength(text)).join(',')}\n${all.join('')}`;
}

/** Jobs of any queue that decide whether the store refuses a call. */
class Known {
  readonly #parts: Parts;
  readonly #found = new Map<string, { parents: ParentLink[] } | undefined>();

  constructor(parts: Parts) {
    this.#parts = parts;
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
      const texts = (await this.#parts.run('kinship', queue, part)) as (string | 0)[];
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
    const found = this.#found.get(refKey(ref));
    return (found?.parents ?? []).filter((parent) => !parents.some((given) => isSameJob(given, parent)));
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

  /** Jobs of other queues, as lua/add-family.lua reads them. */
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
