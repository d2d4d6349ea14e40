// Adds jobs of many kinds, one by one and in bulk. The history says what was tried, what was acknowledged and what was refused.
import { setTimeout as sleep } from 'node:timers/promises';
import { jobName } from '../job-name.mjs';
import { LOCK_MS } from '../lock-times.mjs';
import { note, plan, random } from './actor.mjs';

const KINDS = [
  { weight: 40 },
  { weight: 10, opts: { removeOnComplete: true } },
  { weight: 8, opts: { delay: 300 } },
  { weight: 3, opts: { delay: 4000 } },
  { weight: 8, opts: { priority: 3 } },
  { weight: 8, opts: { lifo: true } },
  { weight: 8, does: 'fail once', opts: { attempts: 1000, backoff: { type: 'fixed', delay: 50 } } },
  { weight: 2, does: 'fail', opts: { attempts: 2 } },
  { weight: 12, keyed: true },
  { weight: 20, does: 'last', lasts: [300, 3000] },
  { weight: 6, does: 'last', lasts: [LOCK_MS, LOCK_MS + 3000] },
  { weight: 1.5, does: 'block', lasts: [300, 3000] },
  { weight: 0.3, does: 'block', lasts: [LOCK_MS + 500, LOCK_MS + 1500] },
];

let number = 0;
function draft() {
  number += 1;
  const key = `${plan.who}-${number}`;
  const { does = 'little', opts = {}, lasts = [1, 10], keyed: mayBeKeyed = random.chance(0.2) } = random.weighted(KINDS);
  const keyed = mayBeKeyed && plan.hasKeys;
  const data = { key, does, lastsMs: random.between(...lasts), stubborn: random.chance(0.5) };
  if (keyed) data.lockKey = `k${random.between(1, 4)}`;
  const ownId = random.chance(0.5) ? { jobId: `job-${key}` } : {};
  return { name: does, data, opts: { ...plan.kept, ...opts, ...ownId, ...(keyed ? { lockKey: data.lockKey } : {}) } };
}

async function add(queue, drafts) {
  if (drafts.length > 1) return queue.addBulk(drafts);
  return [await queue.add(drafts[0].name, drafts[0].data, drafts[0].opts)];
}

/** Each time into one of `queues`; `onAdded(queue, jobs)` is told of it. Answers how to stop. */
export function startProducing(queues, onAdded = () => undefined) {
  let stopped = false;
  const done = (async () => {
    while (!stopped) {
      const queue = random.of(queues);
      const drafts = Array.from({ length: random.chance(0.1) ? 5 : 1 }, draft);
      note('adding', { keys: drafts.map(({ data }) => data.key) });
      try {
        const jobs = await add(queue, drafts);
        note('added', { jobs: jobs.map(({ id, data }) => ({ id: jobName(queue.name, id), key: data.key })) });
        onAdded(queue, jobs);
      } catch ({ code, message }) {
        // Not acknowledged: it may be there or not.
        note('refused', { code, message });
      }
      await sleep(plan.paceMs * (0.5 + random.next()));
    }
  })();
  return async () => {
    stopped = true;
    await done;
  };
}
