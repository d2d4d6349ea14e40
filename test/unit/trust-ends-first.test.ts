// A run can lose its job while its handler still runs: its time is over, or the handler itself has moved the job. `held` must be false before
// the store lets another owner in, so before the reply of the store arrives.
import { afterEach, expect, test } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { Worker } from '../../src/worker/worker.js';
import { newGate, openGates } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

const open: { close(force?: boolean): Promise<void> }[] = [];

afterEach(async () => {
  openGates();
  for (const each of open.splice(0).toReversed()) await each.close(true);
});

/** The first run of the job gets no reply to its settle until `held.release()`. The second run is another worker's. */
async function twoRuns(handler: (job: Job) => Promise<unknown>) {
  const memory = new MemoryStore();
  const faulty = new FaultyStore(memory);
  const held = faulty.on('settle', { fault: 'hold-reply', times: 1 });
  const queue = new Queue('q', { connection: memory });
  const job = await queue.add('long', {}, { attempts: 2, backoff: { type: 'fixed', delay: 5 }, timeoutMs: 30 });
  const first = new Worker('q', async (each) => handler(each), { connection: faulty, timeoutGraceMs: 10 });
  open.push(queue, first);
  first.on('error', () => undefined);
  await until('the settle of the first run to be held', () => held.holding === 1);
  const began = newGate();
  const second = new Worker('q', async () => began.open(), { connection: memory, drainDelay: 1 });
  open.push(second);
  await began.opened;
  return { job, held };
}

test('turns held of a timed-out run false before another worker gets the job', async () => {
  const ignores = newGate();
  let lock: Job['lock'] | undefined;
  const { held } = await twoRuns(async (job) => {
    lock = job.lock;
    await ignores.opened;
  });
  expect(lock?.held).toBe(false);
  held.release();
});

test('turns held false when a handler moves its job, before another worker gets the job', async () => {
  let lock: Job['lock'] | undefined;
  const { held } = await twoRuns(async (job) => {
    lock = job.lock;
    await job.sleep('a moment', 1);
  });
  expect(lock?.held).toBe(false);
  held.release();
});

test('keeps held true when the store refuses the move, because the awaited signal has come', async () => {
  const memory = new MemoryStore();
  const queue = new Queue('q', { connection: memory });
  const readings: boolean[] = [];
  const worker = new Worker(
    'q',
    async (job) => {
      await job.step('first', () => queue.signal(job.id, 'approval'));
      await job.waitFor('approval');
      readings.push(job.lock.held);
    },
    { connection: memory },
  );
  open.push(queue, worker);
  await queue.add('waits', {});
  await until('the signal to be found', () => readings.length === 1);
  expect(readings).toEqual([true]);
});

test('aborts a run that was cancelled while the store refused its move', async () => {
  const memory = new MemoryStore();
  const faulty = new FaultyStore(memory);
  const queue = new Queue('q', { connection: memory });
  let signal: AbortSignal | undefined;
  const goOn = newGate();
  const worker = new Worker(
    'q',
    async (job) => {
      ({ signal } = job.lock);
      await job.step('first', () => queue.signal(job.id, 'approval'));
      await job.waitFor('approval');
      await goOn.opened;
    },
    { connection: faulty },
  );
  open.push(queue, worker);
  const held = faulty.on('settle', { fault: 'hold-reply', times: 1 });
  const job = await queue.add('waits', {});
  await until('the refusal to be held', () => held.holding === 1);
  const told = faulty.answered('renew');
  await queue.cancel(job.id, 'enough');
  await told;
  held.release();
  await until('the signal to be aborted', () => signal?.aborted);
  expect(signal?.reason).toMatchObject({ code: 'CANCELLED', message: 'cancelled: enough' });
});

test('keeps held false once it was read as false during a move that the store refused', async () => {
  const memory = new MemoryStore();
  const faulty = new FaultyStore(memory);
  const queue = new Queue('q', { connection: memory });
  const readings: (boolean | undefined)[] = [];
  let lock: Job['lock'] | undefined;
  const worker = new Worker(
    'q',
    async (job) => {
      ({ lock } = job);
      await job.step('first', () => queue.signal(job.id, 'approval'));
      await job.waitFor('approval');
      readings.push(job.lock.held);
    },
    { connection: faulty },
  );
  open.push(queue, worker);
  const held = faulty.on('settle', { fault: 'hold-reply', times: 1 });
  await queue.add('waits', {});
  await until('the refusal to be held', () => held.holding === 1);
  readings.push(lock?.held);
  held.release();
  await until('the run to go on', () => readings.length === 2);
  expect(readings).toEqual([false, false]);
});
