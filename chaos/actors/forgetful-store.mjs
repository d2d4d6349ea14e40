// A store with defects, to see that they are found: it says that sessions were renewed and does not renew them, and that jobs were added
// of which it forgets one call in five, beginning with the third: also a short run, most of which the file is locked, has some. And one
// time in three, beginning with the first, a schedule gets the job of a later slot. Limits of groups and rate limits it does not keep.
// It says that steps were recorded and jobs were cancelled, and does neither.
import { isMainThread } from 'node:worker_threads';
import { openStore } from 'holdfast';
import { EVERY_MS } from '../schedules.mjs';

const FORGOTTEN = 5;
const SKIPPED = 3;

/** One URL, or one for the event loop and one for the lock thread. */
export default async ({ main, thread }) => {
  const store = await openStore(isMainThread ? main : thread);
  let adds = 0;
  let advances = 0;
  const broken = {
    claim: (queue, { limit: _, ...request }) => store.claim(queue, request),
    settle: (queue, outcomes, call, claim) => {
      const { limit: _, ...request } = claim ?? {};
      return store.settle(queue, outcomes, call, claim && request);
    },
    configure: (queue, { groups: _, ...settings }) => store.configure(queue, settings),
    schedule: (queue, changes) => {
      const isSkipped = changes[0].kind === 'advance' && changes[0].next !== undefined && (advances += 1) % SKIPPED === 1;
      return store.schedule(queue, isSkipped ? changes.map(later) : changes);
    },
    write: async (queue, writes, transaction) => {
      const isStep = writes[0].kind === 'step' && writes[0].token !== undefined;
      return isStep ? writes.map(({ value }) => ({ status: 'done', value })) : store.write(queue, writes, transaction);
    },
    change: async (queue, target, change) =>
      change.kind === 'cancel' ? { changed: target, others: [], more: false } : store.change(queue, target, change),
    renew: async (renewals) => renewals.map(() => ({ alive: true, notices: [] })),
    add: async (queue, jobs, call) => {
      adds += 1;
      if (adds % FORGOTTEN !== 3) return store.add(queue, jobs, call);
      return jobs.map((_, index) => ({ id: `forgotten-${call.caller}-${call.seq}-${index}`, status: 'added' }));
    },
  };
  return new Proxy(store, {
    get: (target, name) => {
      const value = broken[name] ?? Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
};

/** The same change, for the slot after the one that is meant. */
function later({ next, ...change }) {
  const at = next.at + EVERY_MS;
  const id = next.job.id.replace(/\d+$/, String(at));
  return { ...change, next: { ...next, at, dueInMs: next.dueInMs + EVERY_MS, job: { ...next.job, id } } };
}
