// Jobs of ten megabytes: all of them complete on every store with the default options of queue and worker, results come back whole, and no
// call of ours blocks the event loop for long. Calls that are bounded by their number of jobs alone fail here on every store.
import { describe, expect, onTestFinished, test } from 'vitest';
import { QueueEvents } from '../../src/events/queue-events.js';
import { Queue } from '../../src/queue/queue.js';
import { ENGINES, scene } from '../support/scenes/faulty-scene.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { FULL } from '../support/run/matrix.js';

const JOBS = FULL ? 60 : 30;
const BYTES = 10 * 1024 * 1024;
const BLOCKED_MS = 250;
/** BLOCKED_MS as a multiple of `turnAround`, where nothing else uses the memory and the caches of the machine. */
const TURNS = 7.5;

/** Watches the loop from now on. Returns how long it was blocked at most, counting only what this process itself computed. */
function watchLoop(): () => number {
  let longest = 0;
  let at = performance.now();
  let cpu = process.cpuUsage();
  const timer = setInterval(() => {
    const wall = performance.now() - at;
    const { user, system } = process.cpuUsage(cpu);
    longest = Math.max(longest, Math.min(wall, (user + system) / 1000));
    at = performance.now();
    cpu = process.cpuUsage();
  }, 5);
  onTestFinished(() => clearInterval(timer));
  return () => longest;
}

/** The processor time, in ms, in which this machine encodes and decodes the data of one job now. */
function turnAround(data: object): number {
  const before = process.cpuUsage();
  JSON.parse(JSON.stringify(data));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

describe.each(ENGINES)('large jobs on %s', (engine) => {
  test(`completes ${JOBS} jobs of ten megabytes without blocking the loop`, { timeout: paced(120_000) }, async () => {
    const { queue: name, store, worker } = await scene(engine);
    const queue = new Queue<{ text: string }>(name, { connection: store });
    onTestFinished(() => queue.close());
    const text = 'x'.repeat(BYTES);
    const slowest = [turnAround({ text })];
    const longest = watchLoop();
    // One at a time: each is turned into JSON in one go, which is the caller's data and not ours to cut.
    for (let n = 0; n < JOBS; n += 1) await queue.add('large', { text }, { removeOnComplete: true });
    const sizes: number[] = [];
    const done = newGate();
    const { errors } = worker(
      (job) => {
        sizes.push((job.data as { text: string }).text.length);
        if (sizes.length === JOBS) done.open();
      },
      { concurrency: JOBS },
    );
    await done.opened;
    expect(sizes).toEqual(Array.from({ length: JOBS }, () => BYTES));
    expect(errors).toEqual([]);
    const blockedMs = longest();
    slowest.push(turnAround({ text }));
    expect(blockedMs).toBeLessThan(Math.max(BLOCKED_MS, TURNS * Math.max(...slowest)));
  });

  test('delivers a large result to listeners and to waitUntilFinished', { timeout: paced(60_000) }, async () => {
    const { queue: name, store, worker } = await scene(engine);
    const queue = new Queue(name, { connection: store });
    const events = new QueueEvents(name, { connection: store });
    onTestFinished(() => Promise.all([queue.close(), events.close()]).then(() => undefined));
    await events.waitUntilReady();
    const told = newGate<string>();
    const result = 'y'.repeat(BYTES / 10);
    events.on('completed', ({ returnvalue }) => told.open(returnvalue as string));
    for (const removeOnComplete of [false, true]) {
      const job = await queue.add('large', {}, { removeOnComplete });
      const { worker: running } = worker(() => result);
      expect(await job.waitUntilFinished(events)).toBe(result);
      expect(await told.opened).toBe(result);
      await running.close();
    }
  });

  test('reads large jobs, with their logs, in parts', { timeout: paced(60_000) }, async () => {
    const { queue: name, store } = await scene(engine);
    const queue = new Queue(name, { connection: store });
    onTestFinished(() => queue.close());
    const data = { text: 'z'.repeat(BYTES / 5) };
    const added = await queue.addBulk(
      Array.from({ length: 6 }, (_, n) => ({ name: 'large', data, opts: { jobId: `job-${n}`, priority: n % 2 } })),
    );
    const ids = added.map(({ id }) => id);
    const all = await queue.getJobs(['waiting', 'prioritized'], 0, -1, true);
    expect(all.map(({ id }) => id).sort()).toEqual(ids);
    expect((await queue.getWaiting(-2, -1)).map(({ id }) => id)).toEqual(['job-2', 'job-4']);
    expect((await queue.getWaiting(-9, 1)).map(({ id }) => id)).toEqual(['job-0', 'job-2']);
    const row = 'r'.repeat(60_000);
    for (let n = 0; n < 80; n += 1) await all[0]?.log(`${n} ${row}`);
    const { logs, count } = await queue.getJobLogs(all[0]?.id ?? '', 0, -1);
    expect([count, logs.length]).toEqual([80, 80]);
    expect(logs.map((line) => Number(line.split(' ')[0]))).toEqual(Array.from({ length: 80 }, (_, n) => n));
    await queue.obliterate();
    expect(await queue.count()).toBe(0);
  });
});
