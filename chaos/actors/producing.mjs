// Adds jobs of many kinds, one by one and in bulk. The history says what was tried, what was acknowledged and what was refused.
import { setTimeout as sleep } from 'node:timers/promises';
import { GROUPS } from '../groups.mjs';
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
  { weight: 12, unique: true, does: 'last', lasts: [300, 3000] },
  { weight: 20, grouped: true, does: 'last', lasts: [300, 2500] },
  { weight: 20, does: 'last', lasts: [300, 3000] },
  { weight: 6, does: 'last', lasts: [LOCK_MS, LOCK_MS + 3000] },
  { weight: 1.5, does: 'block', lasts: [300, 3000] },
  { weight: 0.3, does: 'block', lasts: [LOCK_MS + 500, LOCK_MS + 1500] },
];

let number = 0;
function draft() {
  number += 1;
  const key = `${plan.who}-${number}`;
  const { does = 'little', opts = {}, lasts = [1, 10], ...kind } = random.weighted(KINDS);
  const { keyed: mayBeKeyed = random.chance(0.2), unique = false } = kind;
  const grouped = kind.grouped === true && plan.hasGroups;
  const keyed = mayBeKeyed && plan.hasKeys && !grouped;
  const data = { key, does, lastsMs: random.between(...lasts), stubborn: random.chance(0.5) };
  if (keyed) data.lockKey = `k${random.between(1, 4)}`;
  const ownId = random.chance(0.5) ? { jobId: `job-${key}` } : {};
  const more = keyed ? { lockKey: data.lockKey } : {};
  if (grouped) {
    data.group = `g${random.between(1, GROUPS)}`;
    more.group = { id: data.group };
  }
  if (unique && plan.hasUnique) {
    data.unique = `u${random.between(1, 4)}`;
    more.deduplication = { id: data.unique, keepLastIfActive: random.chance(0.5) };
  }
  return { name: does, data, opts: { ...plan.kept, ...opts, ...ownId, ...more } };
}

/** Those that are kept if the job with their id is running. */
function keepersOf(queue, drafts) {
  const keepers = drafts.filter(({ opts }) => opts.deduplication?.keepLastIfActive === true);
  if (keepers.length === 0) return {};
  return { unique: keepers.map(({ data }) => ({ key: data.key, id: jobName(queue, data.unique) })) };
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
      note('adding', { keys: drafts.map(({ data }) => data.key), ...keepersOf(queue.name, drafts) });
      try {
        const jobs = await add(queue, drafts);
        const told = jobs.map(({ id }, index) => ({ id: jobName(queue.name, id), key: drafts[index].data.key }));
        note('added', { jobs: told.filter((_, index) => !jobs[index].duplicate) });
        if (jobs.some(({ duplicate }) => duplicate))
          note('deduplicated', { jobs: told.filter((_, index) => jobs[index].duplicate) });
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
