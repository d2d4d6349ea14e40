// S7-2, S7-6, S7-8: rates, blocks, metrics and own events between processes, some of which are killed.
import { QueueEvents } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import type { Moment } from '../support/wait/moments.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { ENGINES, newScene, type Scene, SHARED_ENGINES, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

/** A killed process is found by hints. The locks outlast the pauses of a busy machine: a job that is lost before it begins tells no start. */
const LASTING = {
  lockDuration: paced(8000),
  lockRenewTime: paced(1000),
  stalledInterval: 200,
  crashGraceMs: 500,
  maxStalledCount: 5,
};
const MAX = 3;
const DURATION_MS = 500;
/** The store rounds the times of starts. */
const ROUNDING_MS = 2;
/** How far the clock of the store may be from that of a process: it reads both at its start, with a pause of the machine in between. */
const CLOCKS_MS = 100;
const JOBS = 24;

/**
 * Returns the number of starts in the fullest window. The first start opens a window, and the first start after its end opens the next one,
 * as in the store. A start within the rounding of an end may lie on either side: the reading with the emptier windows counts.
 */
function fullestOf(starts: number[]): number {
  const times = starts.toSorted((a, b) => a - b);
  const from = (first: number): number => {
    const end = (times[first] ?? 0) + DURATION_MS;
    let other = Number.POSITIVE_INFINITY;
    let next = first + 1;
    for (; next < times.length; next += 1) {
      const past = (times[next] ?? 0) - end;
      if (past > ROUNDING_MS) break;
      if (past >= -ROUNDING_MS) other = Math.min(other, Math.max(next - first, from(next)));
    }
    return Math.min(other, Math.max(next - first, next < times.length ? from(next) : 0));
  };
  return times.length === 0 ? 0 : from(0);
}

/** Five processes at a time work until all jobs have completed. A process that dies is replaced. */
class Crew {
  readonly all: WorkerProcess[] = [];
  readonly #scene: Scene;
  readonly #options: object;

  constructor(scene: Scene, options: object) {
    this.#scene = scene;
    this.#options = options;
    for (let n = 0; n < 5; n += 1) this.#hire();
  }

  moments(event: string): Moment[] {
    return this.all.flatMap((one) => one.all(event));
  }

  /** The times of all starts, on the store's clock. */
  starts(): number[] {
    return this.moments('started').map(({ processedOn }) => Number(processedOn));
  }

  ready(): Promise<unknown> {
    return Promise.all(this.all.map((one) => one.moment('ready')));
  }

  async done(): Promise<void> {
    const { queue } = this.#scene;
    await until('all jobs', async () => (await queue.getCompletedCount()) === JOBS, 60_000);
    // A busy store may be late. The worker then repeats its call.
    const isLate = ({ args }: Moment): boolean => (args as [{ code?: string }])[0].code === 'TIMEOUT';
    const errors = this.moments('error').filter((moment) => !isLate(moment));
    if (errors.length > 0) throw new Error(`Workers reported errors: ${JSON.stringify(errors)}`);
    for (const one of this.all) one.kill('SIGKILL');
    await Promise.all(this.all.map((one) => one.exited));
  }

  #hire(): void {
    const { url: connection } = this.#scene;
    const one = new WorkerProcess({ queue: 'work', connection, options: { ...LASTING, ...this.#options } }, 'limited.mjs');
    this.all.push(one);
    void one.exited.then(() => {
      const died = one.all('started').at(-1);
      if (died !== undefined && this.all.length < 12 && this.#isDeath(died)) this.#hire();
    });
  }

  #isDeath({ jobId, attemptsStarted }: Moment): boolean {
    return attemptsStarted === 1 && String(jobId).startsWith('die');
  }
}

/** `dying`: every sixth job kills its process at its first start. */
async function addJobs({ queue }: Scene, special: 'die' | 'block', every = 6): Promise<void> {
  const name = (n: number): string => (n % every === 1 ? special : 'plain');
  await queue.addBulk(Array.from({ length: JOBS }, (_, n) => ({ name: name(n), data: {}, opts: { jobId: `${name(n)}-${n}` } })));
}

test('the judge of windows counts from the first start of each, and reads rounded ends in favour of the store', () => {
  expect([fullestOf([]), fullestOf([5]), fullestOf([0, 1, 2, 3])]).toEqual([0, 1, 4]);
  expect(fullestOf([0, 10, 499, 503, 504, 505])).toBe(3);
  expect(fullestOf([0, 10, 20, 497, 503])).toBe(4);
  // The start at 499 closes the first window or opens the second one, which would then hold four.
  expect([fullestOf([0, 499, 501, 502, 503]), fullestOf([0, 1, 2, 499, 501, 502, 503])]).toEqual([3, 4]);
});

describe.each(oneInThisRun(SHARED_ENGINES))('S7 limits on %s', (engine) => {
  test('S7-2 no window of the history holds more than `max` starts under the limiter of workers, although processes die', async () => {
    const scene = await newScene(engine);
    await addJobs(scene, 'die');
    const crew = new Crew(scene, { limiter: { max: MAX, duration: DURATION_MS } });
    await crew.done();
    // Four jobs started twice.
    expect(crew.starts().length).toBeGreaterThanOrEqual(JOBS + 4);
    expect(fullestOf(crew.starts())).toBe(MAX);
  });

  test('S7-2 no window holds more than `max` starts under a global rate, and windows hold more without it', async () => {
    const scene = await newScene(engine);
    await scene.queue.setGlobalRateLimit(MAX, DURATION_MS);
    await addJobs(scene, 'die');
    const crew = new Crew(scene, {});
    await crew.done();
    expect(fullestOf(crew.starts())).toBe(MAX);
    // The negative control: the same jobs, workers and deaths without the limit.
    const free = await newScene(engine);
    const freeCrew = new Crew(free, {});
    await freeCrew.ready();
    await addJobs(free, 'die');
    await freeCrew.done();
    expect(fullestOf(freeCrew.starts())).toBeGreaterThan(MAX);
  });

  test('S7-2 no job of any process starts while the queue is blocked by rateLimit and RateLimitError', async () => {
    const scene = await newScene(engine);
    await addJobs(scene, 'block', 12);
    const crew = new Crew(scene, {});
    await crew.done();
    const blocks = crew.moments('blocked').map(({ from, until: end }) => ({ from: Number(from), end: Number(end) }));
    expect(blocks).toHaveLength(2);
    const within = crew.starts().filter((at) => blocks.some(({ from, end }) => at > from + CLOCKS_MS && at < end - CLOCKS_MS));
    expect(within).toEqual([]);
    // RateLimitError counts a start and no attempt.
    expect(await scene.queue.getJob('block-1')).toMatchObject({ attemptsMade: 1, attemptsStarted: 2 });
    expect(crew.starts()).toHaveLength(JOBS + 2);
  });

  test('S7-6 metrics count each finish once although workers are killed', async () => {
    const scene = await newScene(engine);
    await addJobs(scene, 'die', 8);
    const crew = new Crew(scene, { metrics: { maxDataPoints: 10 } });
    await crew.done();
    const { meta, data } = await scene.queue.getMetrics('completed');
    expect(meta.count).toBe(JOBS);
    expect(data.reduce((sum, point) => sum + point, 0)).toBe(meta.prevCount);
    expect((await scene.queue.getMetrics('failed')).meta.count).toBe(0);
    const text = await scene.queue.exportPrometheusMetrics({ env: 'test' });
    expect(text).toContain(`bullmq_job_completed_total{queue="work", env="test"} ${JOBS}\n`);
    expect(text).toContain(`bullmq_job_count{queue="work", state="completed", env="test"} ${JOBS}\n`);
  });

  test('S7-8 own events, `<event>:<jobId>`, workers and listeners are seen by other processes', async () => {
    const scene = await newScene(engine);
    const { queue, url: connection } = scene;
    const events = new QueueEvents('work', { connection });
    onTestFinished(() => events.close());
    await events.waitUntilReady();
    const heard: unknown[] = [];
    events.on<Record<string, (args: unknown) => void>>('example', (args) => heard.push(args));
    const [one, two] = [1, 2].map(() => new WorkerProcess({ queue: 'work', connection }, 'listener.mjs')) as [
      WorkerProcess,
      WorkerProcess,
    ];
    const worker = new WorkerProcess({ queue: 'work', connection, options: { ...LASTING, name: 'w' } });
    await Promise.all([one.moment('ready'), two.moment('ready'), worker.moment('ready')]);
    one.send(JSON.stringify({ eventName: 'example', jobId: '7', list: [1, { two: 2 }] }));
    const args = { jobId: '7', list: [1, { two: 2 }] };
    for (const process of [one, two])
      for (const name of ['example', 'example:7']) expect(await process.moment(name)).toMatchObject({ args });
    await until('the event in this process', () => heard.length === 1);
    expect(heard).toEqual([args]);
    await queue.add('echo', { n: 1 }, { jobId: 'mine' });
    expect(await two.moment('completed:mine')).toMatchObject({ args: { jobId: 'mine', returnvalue: { n: 1 } } });
    expect((await queue.getWorkers()).map(({ pid, worker: name }) => [pid, name])).toEqual([[String(worker.pid), 'w']]);
    const pids = async () => (await queue.getQueueEvents()).map(({ pid }) => Number(pid)).toSorted((a, b) => a - b);
    expect(await pids()).toEqual([one.pid, two.pid].toSorted((a, b) => a - b));
    one.kill('SIGTERM');
    await one.exited;
    expect(await pids()).toEqual([two.pid]);
  });
});

describe.each(ENGINES)('S7 counts on %s', (engine) => {
  test('S7-6 counts per priority, and jobs of a paused queue as waiting', async () => {
    const scene = await newScene(engine);
    const { queue } = scene;
    await queue.pause();
    await queue.addBulk([0, 0, 2, 2, 2, 9].map((priority) => ({ name: 'x', data: {}, opts: { priority } })));
    await queue.add('later', {}, { delay: 600_000 });
    expect(await queue.getCountsPerPriority([0, 2, 3, 9])).toEqual({ 0: 2, 2: 3, 3: 0, 9: 1 });
    const counts = { active: 0, completed: 0, delayed: 1, failed: 0, prioritized: 4, waiting: 2, 'waiting-children': 0 };
    expect(await queue.getJobCounts()).toEqual(counts);
    const text = await queue.exportPrometheusMetrics();
    for (const [state, count] of Object.entries(counts))
      expect(text).toContain(`bullmq_job_count{queue="work", state="${state}"} ${count}\n`);
    await queue.resume();
    work(scene, async () => 1, { metrics: { maxDataPoints: 5 } });
    await until('all to finish', async () => (await queue.getMetrics('completed')).meta.count === 6);
  });
});
