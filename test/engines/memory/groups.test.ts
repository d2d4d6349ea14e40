import { describe, expect, it } from 'vitest';
import { MemoryStore } from '../../../src/store/memory/index.js';
import { newJob } from '../../unit/store-samples.js';

const QUEUE = 'q';

async function storeWith(groups: number): Promise<MemoryStore> {
  const store = new MemoryStore();
  const jobs = Array.from({ length: groups }, (_, n) => newJob({ group: `g${n}` }));
  await store.add(QUEUE, jobs, { caller: 'c', seq: 1 });
  await store.configure(QUEUE, { groups: { maxActive: 2, rate: { max: 5, durationMs: 1_000 } } });
  return store;
}

/** Sets the limits of all groups to what they are, as each worker does when it starts. Returns the processor time. */
async function costOfWorkers(store: MemoryStore): Promise<number> {
  const before = process.cpuUsage();
  for (let n = 0; n < 300; n += 1)
    await store.configure(QUEUE, { groups: { maxActive: 2, rate: { max: 5, durationMs: 1_000 } } });
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

describe('groups in memory', () => {
  it('are not visited when a worker sets the limits that they have', async () => {
    const [few, many] = [await storeWith(1), await storeWith(20_000)];
    await costOfWorkers(few);
    const [least, most] = [await costOfWorkers(few), await costOfWorkers(many)];
    expect(most / least).toBeLessThan(12);
    await Promise.all([few.close(), many.close()]);
  });
});
