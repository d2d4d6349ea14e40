// What something else than Holdfast has written into a store harms the job that it hit. The others go on, whoever reads gets an answer or a
// clear refusal, and a worker neither ends nor runs in circles.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { type Job, Queue, QueueEvents, Worker } from '../../src/index.js';
import { until } from '../support/wait/until.js';
import { verdictOn } from './verdict.js';

export interface Hit {
  queue: string;
  jobId: string;
}

export interface Damage {
  title: string;
  /** 'queue': its other jobs may be lost too. Those of other queues never. */
  harms: 'job' | 'queue';
  /** The job was run once and has failed before it is hit. */
  worn?: boolean;
  /** What the job says in the end, where it must have failed because of it. */
  reason?: RegExp;
  hit(hit: Hit): Promise<unknown>;
}

/** A worker that ran in circles would report far more within LOOK_MS. */
const MOST_ERRORS = 15;
const LOOK_MS = 1_000;
const PATIENCE_MS = 15_000;
const OPTIONS = { useDedicatedLockThread: false, stalledInterval: 100, drainDelay: 1, runRetryDelay: 100 };

let number = 0;

export async function survive(connection: string, { harms, worn = false, reason, hit }: Damage): Promise<void> {
  const name = `hit-${(number += 1)}`;
  const [queue, other] = [new Queue(name, { connection }), new Queue(`${name}-other`, { connection })];
  const errors: Error[] = [];
  const workers: Worker[] = [];
  const work = (of: Queue, processor: (job: Job) => Promise<unknown>): Worker => {
    const worker = new Worker(of.name, processor, { connection, autorun: false, ...OPTIONS });
    worker.on('error', (error) => errors.push(error));
    workers.push(worker);
    return worker;
  };
  queue.on('error', () => undefined);
  other.on('error', () => undefined);
  try {
    const victim = await queue.add('victim', { n: 0 }, { attempts: 2, ...(worn && { backoff: 600_000 }) });
    if (worn)
      await failOnce(
        queue,
        work(queue, async () => Promise.reject(new Error('first'))),
      );
    const good = await queue.addBulk([1, 2].map((n) => ({ name: 'good', data: { n } })));
    await hit({ queue: name, jobId: victim.id });
    await read(queue, victim.id);
    const elsewhere = await other.add('good', { n: 3 });
    if (worn) await verdictOn(() => queue.promoteJobs());
    void work(queue, echo).run();
    void work(other, echo).run();
    await completed(other, [elsewhere.id]);
    if (harms === 'job')
      await completed(
        queue,
        good.map(({ id }) => id),
      );
    const before = errors.length;
    await sleep(LOOK_MS);
    expect(errors.length - before, `errors within ${LOOK_MS} ms: ${errors.at(-1)?.message}`).toBeLessThan(MOST_ERRORS);
    expect(workers.filter((worker) => worker.closing === undefined).every((worker) => worker.isRunning())).toBe(true);
    await read(queue, victim.id);
    if (reason !== undefined) expect((await queue.getJob(victim.id))?.failedReason).toMatch(reason);
    await listen(queue.name, connection);
  } finally {
    await Promise.all(workers.map((worker) => worker.close()));
    await Promise.all([queue, other].map((one) => one.close()));
  }
}

async function echo(job: Job): Promise<unknown> {
  return job.data;
}

/** Everything that shows the job, or lists in which it may be. */
async function read(queue: Queue, jobId: string): Promise<void> {
  const looks: (() => Promise<unknown>)[] = [
    async () => seen(await queue.getJob(jobId)),
    async () => Promise.all((await queue.getJobs(['waiting', 'delayed', 'active', 'completed', 'failed'])).map(seen)),
    () => queue.getJobCounts(),
    () => queue.getJobLogs(jobId),
    () => queue.getLock(jobId),
    () => queue.getInstances(),
  ];
  for (const look of looks) await verdictOn(look);
}

async function seen(job: Job | undefined): Promise<unknown> {
  return [job?.data, job?.opts, job?.progress, job?.stacktrace, job?.returnvalue, await job?.getState(), job?.asJSON()];
}

/** From the first event on, for as long as one that goes wrong would take to show. */
async function listen(name: string, connection: string): Promise<void> {
  const listener = new QueueEvents(name, { connection, lastEventId: '0' });
  const told: unknown[] = [];
  listener.on('error', (error) => told.push(error));
  await listener.waitUntilReady();
  await sleep(100);
  await listener.close();
  expect(told.length).toBeLessThan(MOST_ERRORS);
}

async function failOnce(queue: Queue, worker: Worker): Promise<void> {
  void worker.run();
  await until('the first attempt', async () => ((await queue.getJobCounts('delayed'))['delayed'] ?? 0) === 1);
  await worker.close();
}

async function completed(queue: Queue, ids: string[]): Promise<void> {
  const done = async (id: string): Promise<boolean> => (await verdictOn(() => queue.getJobState(id))).value === 'completed';
  const all = async (): Promise<boolean> => (await Promise.all(ids.map(done))).every(Boolean);
  await until(`jobs ${ids.join(', ')} of ${queue.name} to be completed`, all, PATIENCE_MS);
}
