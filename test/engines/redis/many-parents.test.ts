// Families on Redis with one child of many parents, and with one parent of many children: what they cost, and when they are there.
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import { cancelJob } from '../../../src/handle/cancel.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { completed, failed, retryFrom } from '../../../src/testing/conformance/samples.js';
import { type ScriptCost, scriptCost } from './script-time.js';
import { newJob, openTwo } from './support.js';

/** What is linear grows 4 times, what is quadratic 16 times. */
const TIMES = 4;
const LINEAR = 8;
const FEW = 750;
/** Of the CPU of a quiet machine, on average: three times what is seen. */
const STEP_MS = 2;

let client: Redis;
let store: RedisStore;
let other: RedisStore;
let seq: number;

beforeEach(async () => {
  ({ store, other, client } = await openTwo('q', 'far'));
  seq = 0;
});

async function add(...jobs: Partial<NewJob>[]): Promise<void> {
  const replies = await store.add('q', jobs.map(newJob), { caller: 'p', seq: ++seq });
  expect(replies.every(({ status }) => status === 'added')).toBe(true);
}

const idsOf = (name: string, size: number): string[] => Array.from({ length: size }, (_, n) => `${name}-${n}`);

/** One child of `size` parents. */
function addGraph(name: string, size: number, parentQueue = 'q', childQueue = 'q'): Promise<void> {
  const ids = idsOf(name, size);
  const parents = ids.map((id) => ({ queue: parentQueue, id }));
  const own = parentQueue === 'q' ? {} : { queue: parentQueue };
  return add(...ids.map((id) => ({ id, waitsForChildren: true, ...own })), {
    id: name,
    parents,
    ...(childQueue !== 'q' && { queue: childQueue }),
  });
}

/** One parent of `size` children. */
function addTree(name: string, size: number, queue?: string): Promise<void> {
  const child = { parents: [{ queue: 'q', id: name }], ...(queue !== undefined && { queue }) };
  return add({ id: name, waitsForChildren: true }, ...idsOf(name, size).map((id) => ({ id, ...child })));
}

async function claim(queue: string, id: string): Promise<ClaimedJob> {
  const { jobs } = await store.claim(queue, { session: 's', seq: ++seq, count: 1, jobIds: [id] });
  return jobs[0] as ClaimedJob;
}

async function countIn(queue: string, state: 'waiting' | 'waiting-children'): Promise<number> {
  return (await store.status(queue)).counts[state];
}

/** Delivers what calls have left, as workers do. */
async function relay(...queues: string[]): Promise<void> {
  for (let idle = false; !idle; ) {
    const replies = await Promise.all(queues.map((queue) => store.relay(queue, 1_000)));
    idle = replies.every(({ delivered, more }) => delivered === 0 && !more);
  }
}

interface Cost {
  /** The CPU of this process, in ms. */
  own: number;
  scripts: ScriptCost;
}

async function costOf(work: () => Promise<unknown>): Promise<Cost> {
  const before = process.cpuUsage();
  const scripts = await scriptCost(client, work);
  const { user, system } = process.cpuUsage(before);
  return { own: (user + system) / 1000, scripts };
}

describe('a job with many parents on Redis', () => {
  test('costs in proportion to their number: to add, and to complete', async () => {
    const costs: { added: Cost; ended: Cost }[] = [];
    await addGraph('first', FEW);
    await relay('q');
    for (const size of [FEW, TIMES * FEW]) {
      const name = `graph-${size}`;
      const before = await countIn('q', 'waiting-children');
      const added = await costOf(() => addGraph(name, size));
      expect(await countIn('q', 'waiting-children')).toBe(before + size);
      const ended = await costOf(async () => {
        await store.settle('q', [completed(await claim('q', name))]);
        await relay('q');
      });
      expect(await countIn('q', 'waiting-children')).toBe(before);
      costs.push({ added, ended });
    }
    const [few, many] = costs as [(typeof costs)[0], (typeof costs)[0]];
    for (const part of ['added', 'ended'] as const) {
      const { own, scripts } = many[part];
      expect(own / few[part].own).toBeLessThan(LINEAR);
      expect((scripts.scripts * scripts.ms) / (few[part].scripts.scripts * few[part].scripts.ms)).toBeLessThan(LINEAR);
      expect(scripts.ms).toBeLessThan(STEP_MS);
      // No script takes much more than 100 of them.
      expect(scripts.scripts).toBeGreaterThan((TIMES * FEW) / 100);
    }
  });

  test.each([
    ['in its queue', 'q', 'q'],
    ['that lie in another queue', 'far', 'q'],
    ['when it lies in another queue', 'q', 'far'],
  ])('releases all of them %s, however it ends', async (_title, parentQueue, childQueue) => {
    for (const end of ['completed', 'failed', 'removed'] as const) {
      await addGraph(end, 1_050, parentQueue, childQueue);
      expect(await countIn(parentQueue, 'waiting-children')).toBe(1_050);
      if (end === 'removed') await store.change(childQueue, [end], { kind: 'remove' });
      else {
        const job = await claim(childQueue, end);
        // The job is gone before its parents know.
        await store.settle(childQueue, [end === 'completed' ? completed(job, { count: 0 }) : failed(job, { count: 0 })]);
      }
      await relay('q', 'far');
      expect((await store.jobs(childQueue, [end])).jobs).toEqual([undefined]);
      expect(await countIn(parentQueue, 'waiting-children')).toBe(0);
      const { counts } = await store.children(parentQueue, `${end}-1049`, { states: [], limit: 1 });
      expect(counts).toMatchObject({ pending: 0, processed: end === 'completed' ? 1 : 0 });
    }
    expect(await client.keys('*telling*')).toEqual([]);
  });

  test('that is retried while its parents hear of its end keeps all of them waiting', async () => {
    await addGraph('a', 1_050);
    await store.settle('q', [completed(await claim('q', 'a'))]);
    await store.change('q', ['a'], retryFrom('completed'));
    await relay('q');
    const links = await Promise.all(idsOf('a', 1_050).map((id) => store.children('q', id, { states: [], limit: 1 })));
    expect(links.filter(({ counts }) => counts.pending !== 1)).toEqual([]);
  });
});

describe('a job with many children on Redis', () => {
  const CHILDREN = 3_000;

  test.each([
    ['in its queue', undefined],
    ['in another queue', 'far'],
  ])('has all of them %s when the add resolves', async (_title, queue) => {
    await addTree('tree', CHILDREN, queue);
    const { counts } = await other.children('q', 'tree', { states: [], limit: 1 });
    expect([counts.pending, (await other.status(queue ?? 'q')).counts.waiting]).toEqual([CHILDREN, CHILDREN]);
  });

  test.each([
    ['in its queue', undefined],
    ['in another queue', 'far'],
  ])('that is cancelled with its children right after the add leaves none %s to run', async (_title, queue) => {
    await addTree('tree', CHILDREN, queue);
    await cancelJob(other, 'q', 'tree', 'not needed', { children: true });
    await relay('q', 'far');
    expect((await store.claim(queue ?? 'q', { session: 's', seq: ++seq, count: 10 })).jobs).toEqual([]);
  });
});
