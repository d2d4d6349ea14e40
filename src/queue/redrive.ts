// Sends dead letters back to the queues that their jobs came from.
import { parseQueueName } from '../job/names.js';
import { checkInteger } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import type { ListName, Store } from '../store/contract/index.js';

export interface RedriveOptions {
  /** Default: all letters that are there when the call begins. */
  count?: number;
  /** A queue for all letters: its name, or `prefix:name`. Default: the queue of each letter's job. */
  to?: string;
}

const NAMES = new OptionNames<RedriveOptions>({ of: 'redrive', known: { count: true, to: true } });
/** Letters are waiting unless a worker has run them. */
const LISTS: ListName[] = ['waiting', 'prioritized', 'delayed', 'completed', 'failed'];
const CHUNK = 100;

export async function redrive(
  store: Store,
  { stored, prefix }: { stored: string; prefix: string },
  options: RedriveOptions,
): Promise<number> {
  const { count, to } = NAMES.checked(options);
  const target = to === undefined ? undefined : parseQueueName(to, prefix).stored;
  const { counts } = await store.status(stored);
  const all = LISTS.reduce((sum, list) => sum + counts[list], 0);
  const most = count === undefined ? all : Math.min(checkInteger('count', count, { min: 1 }), all);
  return target === undefined ? toOrigins(store, stored, most) : toQueue(store, stored, target, most);
}

async function toQueue(store: Store, queue: string, to: string, most: number): Promise<number> {
  let sent = 0;
  for (let more = true; more && sent < most; ) {
    const reply = await store.change(queue, { lists: LISTS, limit: Math.min(CHUNK, most - sent) }, { kind: 'send', to });
    sent += reply.changed.length;
    more = reply.more && reply.changed.length > 0;
  }
  return sent;
}

/** Reads the letters to learn where they come from. Letters that cannot be sent are passed over. */
async function toOrigins(store: Store, queue: string, most: number): Promise<number> {
  let sent = 0;
  for (const list of LISTS) {
    let passed = 0;
    while (sent < most) {
      const end = passed + Math.min(CHUNK, most - sent) - 1;
      const { jobs } = await store.jobs(queue, { lists: [list], start: passed, end, asc: true });
      if (jobs.length === 0) break;
      const origins = byOrigin(jobs);
      let here = 0;
      for (const [to, ids] of origins) here += (await store.change(queue, ids, { kind: 'send', to })).changed.length;
      sent += here;
      passed += jobs.length - here;
    }
  }
  return sent;
}

function byOrigin(jobs: { id: string; origin?: { queue: string } }[]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const { id, origin } of jobs)
    if (origin !== undefined) groups.set(origin.queue, [...(groups.get(origin.queue) ?? []), id]);
  return groups;
}
