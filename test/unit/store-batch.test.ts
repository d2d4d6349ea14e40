// `capabilities.batch`: no caller puts more into a call than its store likes, where the caller can choose.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Queue, Worker } from '../../src/index.js';
import type { Outcome } from '../../src/job/outcome.js';
import type { NewJob } from '../../src/job/record.js';
import type { Capabilities } from '../../src/store/capabilities.js';
import type {
  Call,
  Change,
  ChangeReply,
  ClaimReply,
  ClaimRequest,
  Extension,
  ExtendStatus,
  Selection,
  SettleReply,
} from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { until } from '../support/wait/until.js';

const BATCH = 7;

/** Notes how much each call carries. */
class SmallStore extends MemoryStore {
  override readonly capabilities = { ...new MemoryStore().capabilities, batch: BATCH };
  readonly sizes: Record<'add' | 'claim' | 'settle' | 'extend' | 'change', number[]> = {
    add: [],
    claim: [],
    settle: [],
    extend: [],
    change: [],
  };

  override add(queue: string, jobs: NewJob[], call: Call): ReturnType<MemoryStore['add']> {
    this.sizes.add.push(jobs.length);
    return super.add(queue, jobs, call);
  }

  override claim(queue: string, request: ClaimRequest): Promise<ClaimReply> {
    this.sizes.claim.push(request.count);
    return super.claim(queue, request);
  }

  override settle(queue: string, outcomes: Outcome[], call?: Call, claim?: ClaimRequest): Promise<SettleReply> {
    this.sizes.settle.push(outcomes.length);
    if (claim !== undefined) this.sizes.claim.push(claim.count);
    return super.settle(queue, outcomes, call, claim);
  }

  override extend(queue: string, extensions: Extension[]): Promise<ExtendStatus[]> {
    this.sizes.extend.push(extensions.length);
    return super.extend(queue, extensions);
  }

  override change(queue: string, target: string[] | Selection, change: Change): Promise<ChangeReply> {
    if (Array.isArray(target)) this.sizes.change.push(target.length);
    return super.change(queue, target, change);
  }
}

async function opened(capabilities: Partial<Capabilities> = {}): Promise<{ store: SmallStore; queue: Queue }> {
  const store = new SmallStore();
  Object.assign(store.capabilities, capabilities);
  await store.open();
  const queue = new Queue('q', { connection: store });
  onTestFinished(async () => {
    await queue.close();
    await store.close();
  });
  return { store, queue };
}

test('lets a worker with many slots settle and claim in calls of at most the batch size', async () => {
  const { store, queue } = await opened();
  await queue.addBulk(Array.from({ length: 60 }, (_, n) => ({ name: 'job', data: n })));
  const ran: number[] = [];
  const worker = new Worker(
    'q',
    async ({ data }) => {
      await sleep(1);
      ran.push(data as number);
    },
    { connection: store, concurrency: 50 },
  );
  onTestFinished(() => worker.close());
  await until('all jobs are completed', async () => (await queue.getJobCounts('completed'))['completed'] === 60);
  expect(ran.sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, n) => n));
  expect(Math.max(...store.sizes.claim)).toBe(BATCH);
  expect(Math.max(...store.sizes.settle)).toBeLessThanOrEqual(BATCH);
});

test('adds in calls of at most the batch size: single adds together, and a bulk by itself', async () => {
  const { store, queue } = await opened();
  await queue.add('first', {});
  store.sizes.add.length = 0;
  const adds = Array.from({ length: 20 }, () => queue.add('one', {}));
  const bulk = queue.addBulk(Array.from({ length: 30 }, () => ({ name: 'bulk', data: {} })));
  await Promise.all([...adds, bulk]);
  expect(store.sizes.add).toEqual([7, 7, 6, 7, 7, 7, 7, 2]);
});

test('adds a bulk of bare jobs in larger calls, where its store says so, and one with a delayed job in small ones', async () => {
  const { store, queue } = await opened({ bareBatch: 20 });
  await queue.add('first', {});
  store.sizes.add.length = 0;
  const bulk = Array.from({ length: 30 }, () => ({ name: 'bulk', data: {} }));
  await queue.addBulk(bulk);
  expect(store.sizes.add).toEqual([20, 10]);
  for (const opts of [
    { delay: 1 },
    { jobId: 'mine' },
    { priority: 1 },
    { lifo: true },
    { lockKey: 'k' },
    { group: { id: 'g' } },
  ]) {
    store.sizes.add.length = 0;
    await queue.addBulk([...bulk.slice(0, 9), { name: 'bulk', data: {}, opts }]);
    expect(store.sizes.add).toEqual([7, 3]);
  }
});

test('extends and revokes locks in calls of at most the batch size', async () => {
  const { store, queue } = await opened();
  await queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'job', data: {} })));
  const worker = new Worker('q', null, { connection: store });
  onTestFinished(() => worker.close());
  const jobs = [];
  for (let n = 0; n < 20; n += 1) jobs.push((await worker.getNextJob('t')) ?? expect.fail('no job'));
  const ids = jobs.map(({ id }) => id as string);
  expect(
    await worker.extendJobLocks(
      ids,
      ids.map(() => 't'),
      60_000,
    ),
  ).toEqual([]);
  expect(store.sizes.extend).toEqual([7, 7, 6]);
  await queue.obliterate({ force: true });
  expect(store.sizes.change).toEqual([7, 7, 6]);
});
