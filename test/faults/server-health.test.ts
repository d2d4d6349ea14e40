// What a worker says of its health when the connection to its server dies in silence.
import { Queue, Worker } from 'holdfast';
import { expect, onTestFinished, test } from 'vitest';
import { newScene } from '../support/scenes/scene.js';
import { until } from '../support/wait/until.js';
import { paced } from '../support/wait/pace.js';
import { FaultProxy } from '../support/servers/proxy.js';
import { stopwatch } from '../support/wait/stopwatch.js';

test.each(['redis', 'postgres'] as const)(
  'a worker on %s says that its connection is half-open, and takes jobs again when it is healthy',
  async (engine) => {
    const { url } = await newScene(engine);
    const proxy = await FaultProxy.start({ port: Number(new URL(url).port) });
    onTestFinished(() => proxy.close());
    const queue = new Queue('health', { connection: url });
    onTestFinished(() => queue.close());
    const done: string[] = [];
    const processor = async ({ id }: { id: string }): Promise<void> => void done.push(id);
    const options = { connection: proxy.url(url), useDedicatedLockThread: false, drainDelay: 1 };
    const worker = new Worker('health', processor, options);
    worker.on('error', () => undefined);
    onTestFinished(() => worker.close());
    await until('healthy', () => worker.isHealthy());
    const took = stopwatch();
    proxy.swallow('both');
    await until('not healthy', () => !worker.isHealthy());
    // The next look at the queue, and three seconds without an answer.
    expect(took()).toBeLessThan(1000 + 3000 + paced(1500));
    const { id } = await queue.add('job', {});
    proxy.heal();
    await until('healthy again', () => worker.isHealthy());
    await until('its job', () => done.includes(id));
  },
);
