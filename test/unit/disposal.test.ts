// `await using`: what was opened closes at the end of its block.
import { expect, onTestFinished, test, vi } from 'vitest';
import { QueueEvents } from '../../src/events/queue-events.js';
import { QueueEventsProducer } from '../../src/events/queue-events-producer.js';
import { Leader } from '../../src/lock/leader.js';
import { FlowProducer } from '../../src/queue/flow-producer.js';
import { JobScheduler } from '../../src/queue/job-scheduler.js';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';

const options = { connection: 'memory:' };

test.each([
  ['Queue', () => new Queue('q', options)],
  ['Worker', () => new Worker('q', async () => undefined, options)],
  ['QueueEvents', () => new QueueEvents('q', options)],
  ['QueueEventsProducer', () => new QueueEventsProducer('q', options)],
  ['FlowProducer', () => new FlowProducer(options)],
  ['JobScheduler', () => new JobScheduler('q', options)],
  ['Leader', () => new Leader('q', options)],
])('closes a %s', async (_name, make) => {
  const made: { close(): Promise<void>; [Symbol.asyncDispose](): Promise<void> } = make();
  const close = vi.spyOn(made, 'close');
  await made[Symbol.asyncDispose]();
  expect(close).toHaveBeenCalledTimes(1);
});

test('releases a named lock, which the next one gets', async () => {
  const queue = new Queue('q', options);
  onTestFinished(() => queue.close());
  const lock = await queue.takeLock('name');
  expect(await queue.takeLock('name')).toBeUndefined();
  await lock?.[Symbol.asyncDispose]();
  expect(lock?.held).toBe(false);
  expect(await queue.takeLock('name')).toMatchObject({ held: true });
});
