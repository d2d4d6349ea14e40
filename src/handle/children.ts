// The family of a handle: its parent, its children and their results.
import { idsByQueue, isSameJob, LINK_STATES, type LinkState, type ParentLink } from '../job/family.js';
import { refusedByChildren } from '../job/family-refusal.js';
import { jobKey, parseQueueName, queueNamesOf } from '../job/names.js';
import { decode } from '../job/payload.js';
import { checkInteger, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { readLinks } from './read-links.js';
import type { Link, Store } from '../store/contract/index.js';
import type { JobSnapshot } from './job-snapshot.js';

export interface ParentKeys {
  id: string;
  /** `prefix:queue`. */
  queueKey: string;
}

export interface WaitForChildrenOptions {
  /** Only this child counts. `queue`: `prefix:name`, or the name alone. */
  child?: { id: string; queue: string };
}

/** BullMQ's names of the states of links. */
const STATE_NAMES = {
  processed: 'processed',
  unprocessed: 'pending',
  failed: 'failed',
  ignored: 'ignored',
} as const satisfies Record<string, LinkState>;
type DependencyState = keyof typeof STATE_NAMES;
const STATES = Object.keys(STATE_NAMES) as DependencyState[];

interface Page {
  /** Where the page begins: the `next…Cursor` of the page before. Default 0. */
  cursor?: number;
  /** Default 20. */
  count?: number;
}

export type DependenciesOptions = { [S in DependencyState]?: Page };
export type DependencyStates = { [S in DependencyState]?: boolean };
export type DependencyCounts = { [S in DependencyState]?: number };

export interface Dependencies {
  /** Results by the keys of the children. */
  processed?: Record<string, unknown>;
  nextProcessedCursor?: number;
  /** Keys of children. */
  unprocessed?: string[];
  nextUnprocessedCursor?: number;
  failed?: string[];
  nextFailedCursor?: number;
  /** Reasons of failures by the keys of the children. */
  ignored?: Record<string, string>;
  nextIgnoredCursor?: number;
}

const WAIT_NAMES = new OptionNames<WaitForChildrenOptions>({ of: 'moveToWaitingChildren', known: { child: true } });
const PAGES_NAMES = new OptionNames<DependenciesOptions>({
  of: 'getDependencies',
  known: { processed: true, unprocessed: true, failed: true, ignored: true },
});
const COUNT_NAMES = new OptionNames<DependencyStates>({
  of: 'getDependenciesCount',
  known: { processed: true, unprocessed: true, failed: true, ignored: true },
});

const PAGE = 20;
const REMOVED_AT_ONCE = 100;

export function showParent(job: object, [first]: ParentLink[]): void {
  if (first === undefined) return;
  const { id, queue } = first;
  Object.assign(job, { parent: { id, queueKey: queueNamesOf(queue).qualified } satisfies ParentKeys, parentKey: jobKey(first) });
}

export async function waitForChildren(
  snapshot: JobSnapshot,
  given: string | undefined,
  opts: WaitForChildrenOptions,
): Promise<boolean> {
  const { child } = WAIT_NAMES.checked(opts);
  const { context, record } = snapshot;
  const token = snapshot.tokenFor(given, 'moveToWaitingChildren');
  const outcome = {
    kind: 'children',
    jobId: record.id,
    token,
    ...(child !== undefined && { child: { queue: parseQueueName(child.queue, context.prefix).stored, id: child.id } }),
  } as const;
  const { status } = await (await snapshot.holder()).settle(outcome, false);
  if (status === 'ready') return false;
  if (status === 'unsuccessful') throw refusedByChildren(record.id, status, 'moveToWaitingChildren', context.name);
  snapshot.accept(status, 'moveToWaitingChildren');
  snapshot.moved(outcome);
  return true;
}

export async function valuesOf(snapshot: JobSnapshot): Promise<Record<string, unknown>> {
  return valuesBy(await linksOf(snapshot, ['processed']));
}

export async function ignoredOf(snapshot: JobSnapshot): Promise<Record<string, string>> {
  return reasonsBy(await linksOf(snapshot, ['ignored']));
}

export async function dependenciesOf(snapshot: JobSnapshot, opts: DependenciesOptions): Promise<Dependencies> {
  const asked = PAGES_NAMES.checked(opts);
  const named = STATES.filter((state) => asked[state] !== undefined);
  const found: Dependencies = {};
  for (const state of named.length === 0 ? STATES : named) {
    const page = named.length === 0 ? undefined : checkPage(state, asked[state]);
    const links = await linksOf(snapshot, [STATE_NAMES[state]], page === undefined ? undefined : page.from + page.count + 1);
    const shown = page === undefined ? links : links.slice(page.from, page.from + page.count);
    showLinks(found, state, shown);
    if (page !== undefined) found[CURSORS[state]] = links.length > page.from + page.count ? page.from + page.count : 0;
  }
  return found;
}

const CURSORS = {
  processed: 'nextProcessedCursor',
  unprocessed: 'nextUnprocessedCursor',
  failed: 'nextFailedCursor',
  ignored: 'nextIgnoredCursor',
} as const;

function showLinks(found: Dependencies, state: DependencyState, links: Link[]): void {
  if (state === 'processed') found.processed = valuesBy(links);
  else if (state === 'ignored') found.ignored = reasonsBy(links);
  else found[state] = links.map(({ child }) => jobKey(child));
}

function checkPage(state: DependencyState, page: unknown): { from: number; count: number } {
  if (typeof page !== 'object' || page === null) throw invalidOption(state, page, '{ cursor, count }');
  const { cursor = 0, count = PAGE } = page as Page;
  return { from: checkInteger(`${state}.cursor`, cursor), count: checkInteger(`${state}.count`, count, { min: 1 }) };
}

export async function countsOf({ context, record }: JobSnapshot, opts: DependencyStates): Promise<DependencyCounts> {
  const asked = COUNT_NAMES.checked(opts);
  const named = STATES.filter((state) => asked[state] === true);
  const { counts } = await (await context.ready()).children(context.stored, record.id, { states: [...LINK_STATES], limit: 1 });
  return Object.fromEntries((named.length === 0 ? STATES : named).map((state) => [state, counts[STATE_NAMES[state]]]));
}

export async function partFromParent(snapshot: JobSnapshot): Promise<boolean> {
  const { context, record } = snapshot;
  const store = await context.ready();
  const [now] = (await store.jobs(context.stored, [record.id])).jobs;
  if (now === undefined) throw snapshot.missing('removeChildDependency');
  const [parent] = now.parents ?? [];
  if (parent === undefined) return false;
  const child = { queue: context.stored, id: record.id };
  const { changed, others } = await store.change(parent.queue, [parent.id], { kind: 'unlink', child });
  if (changed.length === 0 && others[0]?.status === 'missing')
    throw snapshot.missing(`removeChildDependency: parent ${jobKey(parent)}`);
  if (changed.length === 0) return false;
  const left = now.parents?.filter((other) => !isSameJob(other, parent)) ?? [];
  Object.assign(snapshot.job, { parent: undefined, parentKey: undefined });
  showParent(snapshot.job, left);
  return true;
}

export async function removeUnprocessed(snapshot: JobSnapshot): Promise<void> {
  const store = await snapshot.context.ready();
  const pending = (await linksOf(snapshot, ['pending'])).map(({ child }) => child);
  for (const [queue, ids] of idsByQueue(pending, REMOVED_AT_ONCE)) await removeUnstarted(store, queue, ids);
}

async function removeUnstarted(store: Store, queue: string, ids: string[]): Promise<void> {
  // A reply may be cut: it has the jobs of the first ids.
  for (let left = ids; left.length > 0; ) {
    const { jobs } = await store.jobs(queue, left);
    const unstarted = jobs.filter((job) => job !== undefined && job.state !== 'active' && job.state !== 'failed');
    const change = { kind: 'remove', children: true } as const;
    if (unstarted.length > 0)
      await store.change(
        queue,
        unstarted.map((job) => job?.id ?? ''),
        change,
      );
    left = left.slice(jobs.length);
  }
}

async function linksOf({ context, record }: JobSnapshot, states: LinkState[], most?: number): Promise<Link[]> {
  return readLinks(await context.ready(), context.stored, record.id, states, most);
}

function valuesBy(links: Link[]): Record<string, unknown> {
  return Object.fromEntries(links.map(({ child, text }) => [jobKey(child), text === undefined ? null : decode(text)]));
}

function reasonsBy(links: Link[]): Record<string, string> {
  return Object.fromEntries(links.map(({ child, text }) => [jobKey(child), text ?? '']));
}
