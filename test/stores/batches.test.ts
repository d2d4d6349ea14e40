// When the batches of a worker begin, on every store and with forced orders of the store's replies.
import { describe, expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import type { Capabilities } from '../../src/store/capabilities.js';
import type { Store } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import type { BatchOptions } from '../../src/worker/batch-options.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, scene } from '../support/scenes/faulty-scene.js';
import { newGate, openGates } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

/** Calls of few jobs each, as those of large batches are. */
class SmallCalls extends FaultyStore {
  override get capabilities(): Capabilities {
    return { ...super.capabilities, batch: 15 };
  }
}

async function addJobs(connection: Store, name: string, count: number): Promise<void> {
  const queue = new Queue(name, { connection });
  await queue.addBulk(Array.from({ length: count }, (_, n) => ({ name: 'job', data: n })));
  await queue.close();
}

/** A worker that notes the sizes of its batches. Each batch ends when the gate is open. Timers of the worker last an hour. */
function workBatches(connection: Store, name: string, batch: BatchOptions, opened: Promise<void>): number[] {
  const sizes: number[] = [];
  const worker = new Worker(
    name,
    async ({ jobs }) => {
      sizes.push(jobs.length);
      await opened;
    },
    { connection, drainDelay: 3600, batch },
  );
  worker.on('error', () => undefined);
  onTestFinished(() => {
    openGates();
    return worker.close();
  });
  return sizes;
}

describe.each(ENGINES)('batches on %s', (engine) => {
  test('a batch with minSize jobs begins soon although the claim for more jobs gets no reply', async () => {
    const { inner, queue } = await scene(engine);
    const store = new SmallCalls(inner);
    onTestFinished(() => store.clear());
    await addJobs(inner, queue, 30);
    store.on('claim', { fault: 'hang', after: 2 });
    const sizes = workBatches(store, queue, { size: 50, minSize: 20, waitMs: 3_600_000 }, newGate().opened);
    await until('the batch to begin', () => sizes.length > 0);
    expect(sizes).toEqual([30]);
  });

  test('the next batch begins when the outcomes of the last one were settled in two calls at once', async () => {
    const { inner, store, queue } = await scene(engine);
    const faulty = inner instanceof MemoryStore ? new FaultyStore(new MemoryStore({ lanes: 2 })) : store;
    await faulty.open();
    onTestFinished(() => faulty.clear());
    const { lanes = 1 } = faulty.capabilities;
    await addJobs(faulty, queue, 20);
    const held = faulty.on('settle', { fault: 'hang' });
    const inFlight = faulty.called('settle', lanes);
    const gate = newGate();
    const sizes = workBatches(faulty, queue, { size: 10 }, gate.opened);
    await until('the first batch to begin', () => sizes.length === 1);
    // The memory store wakes workers after each call; a store behind a server does not.
    faulty.losesWakeUps = true;
    gate.open();
    await inFlight;
    held.remove();
    await until('the second batch to begin', () => sizes.length === 2);
    expect(sizes).toEqual([10, 10]);
  });
});

test('a batch of large jobs takes more than one claim brings, because the store has more', async () => {
  const { inner, queue } = await scene('memory');
  const adder = new Queue(queue, { connection: inner });
  const data = 'x'.repeat(2 * 1024 * 1024);
  await adder.addBulk(Array.from({ length: 12 }, () => ({ name: 'job', data })));
  await adder.close();
  const sizes = workBatches(inner, queue, { size: 12, minSize: 1 }, newGate().opened);
  await until('the batch to begin', () => sizes.length > 0);
  expect(sizes).toEqual([12]);
});
