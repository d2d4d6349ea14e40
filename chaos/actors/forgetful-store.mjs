// A store with two defects, to see that they are found: it says that sessions were renewed and does not renew them, and that jobs were added
// of which it forgets one call in five, beginning with the third: also a short run, most of which the file is locked, has some.
import { isMainThread } from 'node:worker_threads';
import { openStore } from 'holdfast';

const FORGOTTEN = 5;

/** One URL, or one for the event loop and one for the lock thread. */
export default async ({ main, thread }) => {
  const store = await openStore(isMainThread ? main : thread);
  let adds = 0;
  const broken = {
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
