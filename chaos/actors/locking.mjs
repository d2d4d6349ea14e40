// Takes named locks that others want too, again and again, and writes to a fenced resource under them.
import { setTimeout as sleep } from 'node:timers/promises';
import { LOCK_MS } from '../lock-times.mjs';
import { block, note, plan, random, resource, watch } from './actor.mjs';

const NAMES = ['ledger', 'printer'];
const USES = [
  { weight: 80, lasts: [5, 100] },
  { weight: 15, lasts: [300, 2500] },
  { weight: 3, lasts: [LOCK_MS, LOCK_MS + 2000] },
  { weight: 2, lasts: [500, LOCK_MS + 1500], blocks: true },
];

/** Those of one queue. Answers how to stop. */
export function startLocking(queue) {
  const leaving = new AbortController();
  const useAll = async (name) => {
    while (!leaving.signal.aborted) {
      try {
        await queue.lock(name, { signal: leaving.signal }, (lock) => use(queue.name, lock));
      } catch (error) {
        if (leaving.signal.aborted) return;
        note('lock refused', { name, code: error.code, message: error.message });
        await sleep(200);
      }
      await sleep(random.between(...plan.restMs));
    }
  };
  const using = NAMES.map(useAll);
  return async () => {
    leaving.abort();
    await Promise.all(using);
  };
}

async function use(queue, lock) {
  const { name, fence } = lock;
  const thing = `name:${name}`;
  const hold = watch.take({ queue, things: [thing], fence, isHeld: () => lock.held });
  const { lasts, blocks = false } = random.weighted(USES);
  try {
    await resource.write(thing, fence);
    if (blocks) block(random.between(...lasts));
    else await sleep(random.between(...lasts));
    await resource.write(thing, fence);
  } finally {
    hold.end('released');
  }
}
