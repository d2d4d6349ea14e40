// A producer is killed while it adds a large flow, which takes several scripts: other processes see all of the flow, or nothing of it.
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../../src/queue/queue.js';
import { Worker } from '../../../src/worker/worker.js';
import { runFixture } from '../../support/processes/fixture.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';
import { newServer } from './support.js';

const CHILDREN = 1_500;
/** The scripts that read what the add has to know: one for each 500 jobs. Nothing is stored before they have replied. */
const READS = CHILDREN / 500;

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

/** A producer adds the flow and is killed. Workers of both queues run what is there. */
async function killedProducer(killAfter: number, parts: string) {
  const { url } = await newServer();
  const client = new Redis(url);
  onTestFinished(() => client.disconnect());
  const flow = { roots: 'roots', parts, children: CHILDREN };
  const { signal } = await runFixture('mortal-flow.mjs', { connection: url, flow, killAfter }).ended;
  expect(signal).toBe('SIGKILL');
  const stored = (await client.keys('{holdfast:*:job')).map((key) => client.hlen(key));
  const jobs = (await Promise.all(stored)).reduce((sum, count) => sum + count, 0);
  const ran: string[] = [];
  const queues = [...new Set(['roots', parts])];
  /** A root runs after all its children. */
  const early: number[] = [];
  for (const queue of queues) {
    const run = async ({ id, name }: { id?: string; name: string }): Promise<void> => {
      if (name === 'root') early.push(CHILDREN - ran.length);
      ran.push(String(id));
    };
    kept(new Worker(queue, run as never, { connection: url, concurrency: 100, drainDelay: 1 }));
  }
  const counts = () => Promise.all(queues.map((queue) => kept(new Queue(queue, { connection: url })).getJobCounts()));
  return { client, jobs, ran, early, counts };
}

const PLACES = [
  ['their own queue', 'roots'],
  ['another queue', 'parts'],
] as const;

test.each(PLACES)('a flow with children in %s is gone when its producer is killed before it is stored', async (_, parts) => {
  const { client, ran, counts } = await killedProducer(READS, parts);
  for (const count of await counts()) expect(Object.values(count).every((jobs) => jobs === 0)).toBe(true);
  for (const pattern of ['*outbox*', '*links:*', '*kids:*', '*:job', '*waiting-children'])
    expect(await client.keys(pattern)).toEqual([]);
  expect(ran).toEqual([]);
});

test.each(PLACES.flatMap(([place, parts]) => [1, 2, 7].map((scripts) => [place, scripts, parts] as const)))(
  'a flow with children in %s is completed by workers when its producer is killed after %i scripts that store it',
  { timeout: paced(60_000) },
  async (_, scripts, parts) => {
    const { client, jobs, ran, early } = await killedProducer(READS + scripts, parts);
    expect(jobs).toBeGreaterThan(0);
    expect(jobs).toBeLessThan(CHILDREN);
    await until('the root to run', () => ran.includes('root'), paced(30_000));
    expect(new Set(ran).size).toBe(CHILDREN + 1);
    expect([ran.length, early]).toEqual([CHILDREN + 1, [0]]);
    await until('no message to be left', async () => (await client.keys('*outbox*')).length === 0);
  },
);
