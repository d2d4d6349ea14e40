// What the listeners of a worker learn of jobs whose owner died once too often, on every store.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';
import { newSession } from '../unit/store-samples.js';

describe.each(ENGINES)('on %s', (engine: Engine) => {
  test('failed has no job if removeOnFail has removed it, and the error still has its id', async () => {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = new Queue(name, { connection });
    onTestFinished(() => queue.close());
    await queue.add('work', {}, { jobId: 'kept' });
    await queue.add('work', {}, { jobId: 'removed', removeOnFail: true });
    await connection.openSession(newSession({ queue: name, id: 'dead', durationMs: paced(1000), maxStalls: 0 }));
    expect((await connection.claim(name, { session: 'dead', seq: 1, count: 2 })).jobs).toHaveLength(2);
    const failed: [job: Job | undefined, error: Error, prev: string][] = [];
    const worker = new Worker(name, async () => 'done', { connection, stalledInterval: 50 });
    onTestFinished(() => worker.close());
    worker.on('failed', (...args) => failed.push(args));
    await until('both failures', () => failed.length === 2);
    const told = failed.map(([job, error, prev]) => [job?.id, job?.failedReason, error, prev]);
    const error = (jobId: string): Error => expect.objectContaining({ code: 'JOB_STALLED', jobId, queue: name });
    expect(told).toEqual(
      expect.arrayContaining([
        ['kept', 'job stalled more than allowable limit', error('kept'), 'active'],
        [undefined, undefined, error('removed'), 'active'],
      ]),
    );
  });
});
