// A store that cannot carry out a call in time: the worker asks for less, and does not repeat the same call for ever.
import { expect, onTestFinished, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { Worker } from '../../src/worker/worker.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

test.each([
  ['is repeated for half of the jobs', undefined],
  ['is repeated for half of the jobs, also after the reply to a larger one was lost', 10],
])('a claim that took too long %s, and all slots get their jobs', async (_what, lost) => {
  const store = new FaultyStore(new MemoryStore());
  const counts: number[] = [];
  const error = new HoldfastError('TIMEOUT', 'the statement took too long', { retryable: true });
  store.on('claim', {
    fault: 'fail',
    error,
    when: (_queue, { count }) => {
      counts.push(count);
      store.losesWakeUps = true;
      return count > 5 && count !== lost;
    },
  });
  store.on('claim', { fault: 'drop-reply', error, times: 1, when: (_queue, { count }) => count === lost });
  const queue = new Queue('work', { connection: store });
  await queue.addBulk(Array.from({ length: 20 }, (_, n) => ({ name: `${n}`, data: {} })));
  let running = 0;
  const goOn = newGate();
  // No job ends before all run, and the next look by the clock is a minute away: only the replies say that there are more jobs.
  const handler = async (): Promise<void> => {
    running += 1;
    await goOn.opened;
  };
  const worker = new Worker('work', handler, { connection: store, concurrency: 20, prefetch: 0, drainDelay: 60 });
  worker.on('error', () => undefined);
  onTestFinished(async () => {
    goOn.open();
    await worker.close();
    await queue.close();
  });
  await until('all jobs to run', () => running === 20);
  expect(counts[0]).toBe(20);
  expect(Math.min(...counts)).toBeLessThanOrEqual(5);
});

test.each([
  ['is repeated with half of the outcomes', undefined],
  ['is repeated with half of the outcomes, also after the reply to a larger one was lost', 10],
  ['is repeated with half of the outcomes, also after the reply to the first one was lost', 20],
])('a settle that took too long %s, and each job is completed once', async (_what, lost) => {
  const store = new FaultyStore(new MemoryStore());
  const counts: number[] = [];
  const error = new HoldfastError('TIMEOUT', 'the statement took too long', { retryable: true });
  store.on('settle', {
    fault: 'fail',
    error,
    when: (_queue, outcomes) => {
      counts.push(outcomes.length);
      return outcomes.length > 5 && outcomes.length !== lost;
    },
  });
  store.on('settle', { fault: 'drop-reply', error, times: 1, when: (_queue, outcomes) => outcomes.length === lost });
  const queue = new Queue('work', { connection: store });
  await queue.addBulk(Array.from({ length: 40 }, (_, n) => ({ name: `${n}`, data: {} })));
  let running = 0;
  const goOn = newGate();
  const handler = async (): Promise<void> => {
    running += 1;
    await goOn.opened;
  };
  const options = { connection: store, concurrency: 20, prefetch: 0, drainDelay: 60, removeOnComplete: { count: 0 } };
  const worker = new Worker('work', handler, options);
  const completed: string[] = [];
  const complaints: string[] = [];
  worker.on('completed', ({ name }) => completed.push(name));
  worker.on('error', ({ message }) => complaints.push(message));
  onTestFinished(async () => {
    goOn.open();
    await worker.close();
    await queue.close();
  });
  await until('the first jobs to run', () => running === 20);
  goOn.open();
  await until('all jobs to be completed', () => completed.length === 40);
  expect(new Set(completed).size).toBe(40);
  expect(await queue.getJobCounts('waiting', 'active', 'completed')).toMatchObject({ waiting: 0, active: 0, completed: 0 });
  expect(counts).toContain(lost === 20 ? 10 : 5);
  expect(complaints.filter((text) => !text.includes('took too long'))).toEqual([]);
});

test('the reason of a refused outcome in the rest of a divided settle reaches its own job', async () => {
  const store = new FaultyStore(new MemoryStore());
  const tooLong = new HoldfastError('TIMEOUT', 'the statement took too long', { retryable: true });
  const refusal = new HoldfastError('PAYLOAD_TOO_LARGE', 'no room for this value');
  const sizes: number[] = [];
  store.on('settle', {
    fault: 'fail',
    error: tooLong,
    when: (_queue, outcomes) => {
      sizes.push(outcomes.length);
      return outcomes.length === 4;
    },
  });
  store.on('settle', {
    fault: 'fail',
    error: refusal,
    when: (_queue, outcomes) =>
      outcomes.length < 4 && outcomes.some((outcome) => outcome.kind === 'completed' && outcome.value === '"large"'),
  });
  const queue = new Queue('work', { connection: store });
  const jobs = await queue.addBulk(['a', 'b', 'c', 'large'].map((name) => ({ name, data: {} })));
  const all = newGate();
  let running = 0;
  const handler = async ({ name }: { name: string }): Promise<string> => {
    running += 1;
    if (running === 4) all.open();
    await all.opened;
    return name;
  };
  const worker = new Worker('work', handler, { connection: store, concurrency: 4, prefetch: 0 });
  const events: string[] = [];
  for (const event of ['completed', 'failed'] as const) worker.on(event, (job) => events.push(`${event} ${job?.name}`));
  worker.on('error', () => undefined);
  onTestFinished(async () => {
    await worker.close();
    await queue.close();
  });
  await until('all jobs to end', () => events.length === 4);
  const ended = await Promise.all(jobs.map(({ id }) => queue.getJob(id)));
  expect(sizes).toEqual([4, 2, 1, 1]);
  expect(running).toBe(4);
  expect(events.toSorted()).toEqual(['completed a', 'completed b', 'completed c', 'failed large']);
  expect(ended.map((job) => job?.failedReason?.includes('no room for this value') ?? false)).toEqual([false, false, false, true]);
});
