// The types of `holdfast/bull` and `holdfast/bun-queue`: programs typed for those libraries compile. Nothing in here runs.
import Bull, { type Job, Queue } from 'holdfast/bull';
import { Queue as BunQueue } from 'holdfast/bun-queue';
import { expectTypeOf } from 'vitest';

interface Mail {
  to: string;
}

export async function bull(): Promise<void> {
  const queue: Bull.Queue<Mail> = new Bull<Mail>('mail', 'redis://localhost', { settings: { lockDuration: 1000 } });
  await queue.process(async (job: Bull.Job<Mail>) => job.data.to);
  await queue.process('named', 5, (job, done) => {
    expectTypeOf(job.data).toEqualTypeOf<Mail>();
    done(null, job.data.to);
  });
  const handler = async (job: Job<Mail>): Promise<string> => job.data.to;
  await queue.process(handler);
  const job = await queue.add({ to: 'ada' }, { attempts: 3, backoff: { type: 'mine', options: { base: 2 } } });
  await queue.add('named', { to: 'ada' });
  // @ts-expect-error: not a mail
  await queue.add({ from: 'ada' });
  expectTypeOf(job.takeLock()).toEqualTypeOf<Promise<number | false>>();
  expectTypeOf(job.extendLock(1)).toEqualTypeOf<Promise<number>>();
  expectTypeOf(job.releaseLock()).toEqualTypeOf<Promise<void>>();
  queue.on('lock-extension-failed', (failed, error) => {
    expectTypeOf(failed.data).toEqualTypeOf<Mail>();
    expectTypeOf(error).toEqualTypeOf<Error>();
  });
  queue.on('completed', ({ queue: { add } }) => void add);
  queue.on('global:completed', (jobId, result) => expectTypeOf([jobId, result]).toEqualTypeOf<string[]>());
  // Without types, and without new.
  const untyped = Queue('mail', { redis: { host: 'localhost' }, prefix: '{app}' });
  await untyped.add('named', { whatever: true });
}

export async function bun(): Promise<void> {
  const queue = new BunQueue<Mail>('mail', { distributedLock: true, horizontalScaling: { enabled: true, jobsPerWorker: 2 } });
  queue.process(5, async (job) => expectTypeOf(job.data).toEqualTypeOf<Mail>());
  const job = await queue.add({ to: 'ada' }, { jobId: 'once', lockKey: 'ada' });
  expectTypeOf(job.duplicate).toEqualTypeOf<boolean>();
  // @ts-expect-error: not a mail
  await queue.add({ from: 'ada' });
  queue.on('leader', (term) => expectTypeOf(term).toEqualTypeOf<number>());
  queue.on('jobStalled', (jobId) => expectTypeOf(jobId).toEqualTypeOf<string>());
}
