// A worker with a map of handlers by the name of the job.
import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { QueueEvents } from '../../src/events/queue-events.js';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';

type Mails = {
  welcome: { data: { to: string }; result: string };
  digest: { data: { week: number }; result: number };
};

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

function scene(name: string): { queue: Queue<Mails>; events: QueueEvents; connection: string } {
  const connection = `memory:handlers-${name}`;
  return { queue: kept(new Queue<Mails>(name, { connection })), events: kept(new QueueEvents(name, { connection })), connection };
}

test('passes each job to the handler of its name, with token and signal', async () => {
  const { queue, events, connection } = scene('by-name');
  const seen: unknown[] = [];
  kept(
    new Worker<Mails>(
      'by-name',
      {
        welcome: (job) => `to ${job.data.to}`,
        digest: async (job, token, signal) => {
          seen.push(token === job.token, signal.aborted);
          return job.data.week + 1;
        },
      },
      { connection },
    ),
  );
  const [welcome, digest] = [await queue.add('welcome', { to: 'ada' }), await queue.add('digest', { week: 7 })];
  expect(await welcome.waitUntilFinished(events)).toBe('to ada');
  expect(await digest.waitUntilFinished(events)).toBe(8);
  expect(seen).toEqual([true, false]);
});

test('fails a job of another name with NO_HANDLER, and another worker may complete it', async () => {
  const { queue, connection } = scene('missing');
  const handlers = { digest: () => 1, toString: undefined as never };
  expect(() => new Worker('missing', handlers, { connection })).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', option: 'processor.toString' }),
  );
  const worker = kept(new Worker('missing', { digest: () => 1 }, { connection }));
  const failed = once(worker, 'failed');
  const job = await queue.add('welcome', { to: 'ada' }, { attempts: 2 });
  const [, error] = (await failed) as [unknown, Error];
  expect(error).toMatchObject({ code: 'NO_HANDLER' });
  expect(error.message).toContain('"welcome", only for "digest"');
  await once(worker, 'failed');
  expect((await queue.getJob(job.id))?.attemptsMade).toBe(2);
});

test('fails a job named like a method of Object.prototype', async () => {
  const { queue, connection } = scene('proto');
  const worker = kept(new Worker('proto', { digest: () => 1 }, { connection }));
  const failed = once(worker, 'failed');
  await (queue as unknown as Queue).add('constructor', {});
  expect((await failed)[1]).toMatchObject({ code: 'NO_HANDLER' });
});

describe('a map of handlers is refused when it is', () => {
  test.each<[string, unknown, object]>([
    ['empty', {}, { option: 'processor' }],
    ['a list', [() => 1], { option: 'processor' }],
    ['no function', { digest: 5 }, { option: 'processor.digest' }],
    ['the options of a worker', { connection: 'memory:' }, { option: 'processor', message: /^The processor is missing\. / }],
    ['a number', 5, { option: 'processor' }],
    ['the path of a file that does not exist', './processor.js', { option: 'processor' }],
  ])('%s', (_what, processor, error) => {
    const make = () => new Worker('refused', processor as never, { connection: 'memory:handlers' });
    const { message = /./, ...rest } = error as { message?: RegExp };
    const expected = { code: 'INVALID_OPTION', ...rest, message: expect.stringMatching(message) };
    expect(make).toThrow(expect.objectContaining(expected));
  });
});
