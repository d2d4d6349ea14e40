// How soon a parent starts after its last child has completed, on a healthy Cluster whose nodes have a queue each.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FlowProducer } from '../../../src/queue/flow-producer.js';
import { Queue } from '../../../src/queue/queue.js';
import { Worker } from '../../../src/worker/worker.js';
import { type RedisCluster, startRedisCluster } from '../../support/servers/redis-cluster.js';
import { paced } from '../../support/wait/pace.js';
import { stopwatch } from '../../support/wait/stopwatch.js';

const FLOWS = 200;
const CHILDREN = 3;
/** With this prefix, the two queues lie on different nodes. */
const PREFIX = 'slots';
const LIMIT_MS = 100;
const STEPS = 10;

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startRedisCluster(3);
});
afterAll(() => cluster.close());

test(`a parent on a Redis Cluster starts within ${LIMIT_MS} ms after its last child on another node has completed, 99 times of 100`, {
  timeout: paced(60_000),
}, async () => {
  const connection = { url: cluster.url, prefix: PREFIX };
  const took: number[] = [];
  /** Runs from the end of the last handler of a child that has ended so far. */
  let sinceLast = stopwatch();
  /** The reference: from the add of a plain job until it starts, right after each flow. */
  const plain: number[] = [];
  let started = (): void => undefined;
  const options = { connection, useDedicatedLockThread: false, concurrency: CHILDREN };
  const steps = new Worker('steps', async () => void (sinceLast = stopwatch()), options);
  const roots = new Worker(
    'work',
    async ({ name }) => {
      (name === 'plain' ? plain : took).push(sinceLast());
      started();
    },
    options,
  );
  const flows = new FlowProducer({ connection });
  const queue = new Queue('work', { connection });
  try {
    await Promise.all([steps.waitUntilReady(), roots.waitUntilReady()]);
    const child = { name: 'step', queueName: 'steps' };
    for (let n = 0; n < FLOWS; n += 1) {
      let start = new Promise<void>((resolve) => (started = resolve));
      await flows.add({ name: 'root', queueName: 'work', children: Array.from({ length: CHILDREN }, () => child) });
      await start;
      start = new Promise<void>((resolve) => (started = resolve));
      sinceLast = stopwatch();
      await queue.add('plain', {});
      await start;
    }
  } finally {
    await Promise.all([steps.close(), roots.close(), flows.close(), queue.close()]);
  }
  const at = (share: number, times = took): number =>
    times.toSorted((a, b) => a - b)[Math.floor(share * (times.length - 1))] ?? Number.NaN;
  console.log(`last child → parent: median ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms, most ${at(1).toFixed(1)} ms`);
  console.log(`add of a plain job → its start: median ${at(0.5, plain).toFixed(1)} ms, p99 ${at(0.99, plain).toFixed(1)} ms`);
  // A parent needs a few steps on two nodes. On a busy machine, each of them takes as long as a start of a plain job.
  expect(at(0.99)).toBeLessThan(Math.max(LIMIT_MS, STEPS * at(0.99, plain)));
});
