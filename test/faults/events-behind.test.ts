// Large results of jobs that are removed on finishing, on every store: a listener sees every event, though not every result, and a caller
// that waits gets the result or is told that it is gone.
import { describe, expect, onTestFinished, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { QueueEvents } from '../../src/events/queue-events.js';
import { Queue } from '../../src/queue/queue.js';
import { ENGINES, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';
import { paced } from '../support/wait/pace.js';

const JOBS = 80;
const BYTES = 300 * 1024;

describe.each(ENGINES)('events behind on %s', (engine) => {
  test('a listener sees every job complete, and a late caller gets the result or learns that it is gone', {
    timeout: paced(60_000),
  }, async () => {
    const { queue: name, store, worker } = await scene(engine);
    const queue = new Queue(name, { connection: store });
    const events = new QueueEvents(name, { connection: store });
    onTestFinished(() => Promise.all([queue.close(), events.close()]).then(() => undefined));
    const errors: Error[] = [];
    const seen = new Map<string, boolean>();
    events.on('error', (error) => errors.push(error));
    events.on('completed', ({ jobId, returnvalue, valueGone }) => {
      expect(returnvalue === undefined).toBe(valueGone === true);
      seen.set(jobId, valueGone !== true);
    });
    await events.waitUntilReady();
    const jobs = await queue.addBulk(
      Array.from({ length: JOBS }, () => ({ name: 'large', data: {}, opts: { removeOnComplete: true } })),
    );
    worker(() => 'r'.repeat(BYTES), { concurrency: 20 });
    await until('all completions to be seen', () => seen.size === JOBS);
    expect(errors).toEqual([]);
    const ends = await Promise.all(
      jobs.map((job) =>
        job.waitUntilFinished(events).then(
          (value) => String(value).length,
          (error: unknown) => (error instanceof HoldfastError ? error.code : error),
        ),
      ),
    );
    expect(new Set(ends)).toEqual(new Set([BYTES, 'RESULT_GONE']));
    // The newest result is always there.
    expect(ends.filter((end) => end === BYTES).length).toBeGreaterThan(5);
  });
});
