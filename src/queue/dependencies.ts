// Lists the children of a job, in BullMQ's shape.
import { jobKey } from '../job/names.js';
import { decode } from '../job/payload.js';
import { invalidOption } from '../runtime/check.js';
import { readLinks } from '../handle/read-links.js';
import type { Link, Store } from '../store/contract/index.js';

export type DependencyType = 'processed' | 'pending';

export interface DependencyList {
  /** `v`: the result of a child that has completed. */
  items: { id: string; v?: unknown }[];
  /** Empty: read the jobs by their keys. */
  jobs: object[];
  total: number;
}

export async function listDependencies(
  store: Store,
  queue: string,
  jobId: string,
  type: DependencyType,
  start: number,
  end: number,
): Promise<DependencyList> {
  if (type !== 'processed' && type !== 'pending') throw invalidOption('type', type, "'processed' or 'pending'");
  const links = await readLinks(store, queue, jobId, [type]);
  const from = start < 0 ? Math.max(0, links.length + start) : start;
  const to = end < 0 ? links.length + end : end;
  return { items: links.slice(from, to + 1).map(itemOf), jobs: [], total: links.length };
}

function itemOf({ child, state, text }: Link): { id: string; v?: unknown } {
  return state === 'processed' ? { id: jobKey(child), v: text === undefined ? null : decode(text) } : { id: jobKey(child) };
}
