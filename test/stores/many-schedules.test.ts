// A queue with thousands of schedules, on every store.
import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import type { ScheduleChange, Store } from '../../src/store/contract/index.js';
import { ENGINES, scene } from '../support/scenes/faulty-scene.js';

const HOUR = 3_600_000;
const ROUNDS = 40;

const CALLS = {
  upsert: (queue: Queue, round: number) => queue.upsertJobScheduler('measured', { every: HOUR }, { name: 'x', data: { round } }),
  read: (queue: Queue) => queue.getJobScheduler('measured'),
};

test.each(ENGINES)(
  'an upsert and a read by id cost the same with 10,000 schedules as with 100 (%s)',
  { timeout: 120_000 },
  async (engine) => {
    const { inner: store, queue: name } = await scene(engine);
    const [few, many] = [new Queue(`${name}-few`, { connection: store }), new Queue(`${name}-many`, { connection: store })];
    for (const queue of [few, many]) onTestFinished(() => queue.close());
    await put(store, few.name, 0, 100);
    await put(store, many.name, 0, 10_000);
    const [ofFew, ofMany] = await costsOf(few, many);
    expect(await many.getJobSchedulersCount()).toBe(10_001);
    expect(ofMany.upsert / ofFew.upsert).toBeLessThan(3);
    expect(ofMany.read / ofFew.read).toBeLessThan(3);
  },
);

type Costs = Record<keyof typeof CALLS, number>;

/** Returns the time of each call, the shortest of many, of two queues side by side. */
async function costsOf(...queues: [Queue, Queue]): Promise<[Costs, Costs]> {
  const costs = queues.map((): Costs => ({ upsert: Number.POSITIVE_INFINITY, read: Number.POSITIVE_INFINITY }));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const call of ['upsert', 'read'] as const) {
      for (const [at, queue] of queues.entries()) {
        const start = performance.now();
        await CALLS[call](queue, round);
        const least = costs[at] as Costs;
        least[call] = Math.min(least[call], performance.now() - start);
      }
    }
  }
  return costs as [Costs, Costs];
}

async function put(store: Store, queue: string, from: number, to: number): Promise<void> {
  const all = Array.from({ length: to - from }, (_, n): ScheduleChange => {
    const id = `schedule ${from + n}`;
    const job = { id: `job of ${id}`, name: 'x', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 1 };
    const next = { at: Date.now() + HOUR + n, dueInMs: HOUR + n, count: 1, job };
    const spec = JSON.stringify({ name: 'x', data: '{}', opts: {}, timing: { every: HOUR } });
    return { kind: 'put', id, version: 0, spec, serial: false, next };
  });
  for (let at = 0; at < all.length; at += 250) await store.schedule(queue, all.slice(at, at + 250));
  const place = store.describe();
  if (place?.engine === 'postgres') await vacuum(String(place.options['url']));
}

/** Removes the dead rows that many changes at once have left behind. Until then they slow down every call. */
async function vacuum(url: string): Promise<void> {
  const client = new Client(url);
  await client.connect();
  await client.query('VACUUM');
  await client.end();
}
