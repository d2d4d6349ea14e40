// Compiled, never run: what must compile and what must not. A line under @ts-expect-error that compiles is itself an error.
import type { Job } from '../../src/handle/job.js';
import type { JobOf, Processor } from '../../src/handle/typed-job.js';
import type { Any, IsJobMap } from '../../src/job/typing.js';
import { Leader } from '../../src/lock/leader.js';
import type { GraphNode } from '../../src/queue/flow-options.js';
import type { FlowProducer } from '../../src/queue/flow-producer.js';
import { Queue } from '../../src/queue/queue.js';
import type { QueueListener } from '../../src/queue/queue-options.js';
import { Worker } from '../../src/worker/worker.js';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function holds<_T extends true>(): void {}

// ── BullMQ's parameters ─────────────────────────────────────────────────────────────────────────────────────────────────────
const plain = new Queue('q');
const job = await plain.add('anything', { any: 'data' });
holds<Equal<typeof job, Job<Any, Any, string>>>();
let last = await plain.add('without data');
last = job;
await last.updateProgress(1);
await plain.add('with options', undefined, { delay: 5 });
await plain.addBulk([{ name: 'a', data: 1 }, { name: 'b' }]);
// @ts-expect-error a name is a string
await plain.add(5, {});
// @ts-expect-error no such option
await plain.add('x', {}, { dely: 5 });

// ── The inside is not shown ─────────────────────────────────────────────────────────────────────────────────────────────────
// @ts-expect-error the context of a queue's jobs is not on the queue
void plain.home;
// @ts-expect-error the context of a worker's jobs is not on the worker
void new Worker('q').home;
// @ts-expect-error only a worker says that a run was settled
void job.settled;
holds<Equal<Extract<keyof Queue | keyof Worker, 'home' | 'context' | 'lockClient'>, never>>();
holds<Equal<Extract<keyof Job, 'settled' | 'showSettled'>, never>>();

interface Mail {
  to: string;
}
const typed = new Queue<Mail, boolean>('q');
const mail = await typed.add('welcome', { to: 'a' });
holds<Equal<typeof mail, Job<Mail, boolean, string>>>();
holds<Equal<Awaited<ReturnType<typeof mail.waitUntilFinished>>, boolean>>();
// @ts-expect-error data is not optional here
await typed.add('welcome');
// @ts-expect-error no such data
await typed.add('welcome', { from: 'a' });

const named = new Queue<Mail, boolean, 'welcome' | 'bye'>('q');
await named.add('bye', { to: 'a' });
// @ts-expect-error no such name
await named.add('hello', { to: 'a' });

new Worker<Mail, boolean>('q', async (each, token, signal) => {
  holds<Equal<typeof each, Job<Mail, boolean, string>>>();
  holds<Equal<typeof token, string>>();
  holds<Equal<typeof signal, AbortSignal>>();
  return each.data.to !== '';
});
// @ts-expect-error the result is a boolean
new Worker<Mail, boolean>('q', async () => 'text');
new Worker('q', async (each) => each.data.anything);
const processor: Processor<Mail, boolean> = async (each) => each.data.to.length > 0;
new Worker<Mail, boolean>('q', processor);
// What BullMQ's users write.
new Worker('q', async (each: Job<Mail>) => each.data.to);
new Worker('q', async (each: Job<Mail, number, 'welcome'>, token?: string, signal?: AbortSignal) =>
  token && signal ? each.timestamp : 0,
);

// A Job type stands for its three parameters.
type MailJob = Job<Mail, boolean, 'welcome'>;
const byJob = new Queue<MailJob>('q');
await byJob.add('welcome', { to: 'a' });
// @ts-expect-error no such name
await byJob.add('hello', { to: 'a' });
holds<Equal<JobOf<MailJob, Any, string>, MailJob>>();

// ── a map from names to data and results ────────────────────────────────────────────────────────────────────────────────────
type Mails = {
  email: { data: { to: string }; result: boolean };
  sms: { data: { phone: number } };
  tick: { data: undefined; result: void };
};
const mapped = new Queue<Mails>('q');
const email = await mapped.add('email', { to: 'a' });
holds<Equal<typeof email, Job<{ to: string }, boolean, 'email'>>>();
const sms = await mapped.add('sms', { phone: 5 }, { delay: 5 });
holds<Equal<typeof sms.returnvalue, Any>>();
await mapped.add('tick');
// @ts-expect-error no such name
await mapped.add('fax', {});
// @ts-expect-error the data of another name
await mapped.add('email', { phone: 5 });
// @ts-expect-error data is not optional here
await mapped.add('email');
await mapped.addBulk([{ name: 'email', data: { to: 'a' } }, { name: 'sms', data: { phone: 5 } }, { name: 'tick' }]);
// @ts-expect-error the data of another name
await mapped.addBulk([{ name: 'email', data: { phone: 5 } }]);

const found = await mapped.getJob('1');
if (found?.name === 'email') holds<Equal<typeof found.data, { to: string }>>();
if (found?.name === 'sms') holds<Equal<typeof found.data, { phone: number }>>();
for (const each of await mapped.getJobs()) if (each.name === 'sms') each.data.phone.toFixed();
mapped.on('waiting', (each) => {
  if (each.name === 'email') each.data.to.toUpperCase();
});

new Worker<Mails>('q', async (each) => {
  switch (each.name) {
    case 'email':
      holds<Equal<typeof each.data, { to: string }>>();
      // @ts-expect-error not the data of this name
      void each.data.phone;
      return true;
    case 'sms':
      return each.data.phone;
    case 'tick':
      return;
  }
});
type Strict = { a: { data: 1; result: 'x' }; b: { data: 2; result: 'y' } };
new Worker<Strict>('q', async (each) => (each.name === 'a' ? 'x' : 'y'));
// @ts-expect-error nobody returns that
new Worker<Strict>('q', async (each) => (each.name === 'a' ? 'x' : 'z'));

// An interface is a map too.
interface MailMap {
  email: { data: { to: string } };
}
await new Queue<MailMap>('q').add('email', { to: 'a' });

// ── what looks like a map and is none ───────────────────────────────────────────────────────────────────────────────────────
holds<Equal<IsJobMap<Mails, Any>, true>>();
holds<Equal<IsJobMap<Any, Any>, false>>();
holds<Equal<IsJobMap<unknown, Any>, false>>();
holds<Equal<IsJobMap<never, Any>, false>>();
holds<Equal<IsJobMap<{}, Any>, false>>();
holds<Equal<IsJobMap<string, Any>, false>>();
holds<Equal<IsJobMap<{ data: number }[], Any>, false>>();
holds<Equal<IsJobMap<{ to: string }, Any>, false>>();
holds<Equal<IsJobMap<{ data: { to: string } }, Any>, false>>();
holds<Equal<IsJobMap<{ a: { data: 1 }; b: string }, Any>, false>>();
holds<Equal<IsJobMap<{ a: { data: 1; more: 2 } }, Any>, false>>();
holds<Equal<IsJobMap<{ a?: { data: 1 } }, Any>, false>>();
holds<Equal<IsJobMap<{ a: { data?: 1 } }, Any>, false>>();
holds<Equal<IsJobMap<{ a: Any }, Any>, false>>();
holds<Equal<IsJobMap<Record<string, { data: number }>, Any>, false>>();
holds<Equal<IsJobMap<Mails, boolean>, false>>();

// ── Locks ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────
const total = await plain.lock('invoice:42', { waitMs: 5 }, async (lock) => lock.fence);
holds<Equal<typeof total, number>>();
const text = await plain.lock('invoice:42', () => 'not a promise');
holds<Equal<typeof text, string>>();
const taken = await plain.takeLock('printer');
// @ts-expect-error somebody else may have it
await taken.release();
holds<Equal<Awaited<ReturnType<typeof job.takeLock>>, string | false>>();
// @ts-expect-error no such option
await plain.takeLock('printer', { wait: 5 });
new Leader('q').on('leader', (term) => holds<Equal<typeof term, number>>());

// ── Generic subclasses and functions, as programs for BullMQ have them ──────────────────────────────────────────────────────
export class LoggingWorker<D, R, N extends string> extends Worker<D, R, N> {
  constructor(name: string, given: Processor<D, R, N>) {
    super(name, given);
    this.on('completed', (each: Job<D, R, N>, result: R) => void [each.data, result]);
    this.once('failed', (each: Job<D, R, N> | undefined, error: Error) => void [each?.failedReason, error]);
    this.addListener('progress', (each: Job<D, R, N>, progress) => void [each.data, progress]);
    this.on('completed', (each, result, prev) => void [each.id, result, prev.length]);
    const active = (each: Job<D, R, N>): void => void each.data;
    this.on('active', active).off('active', active).removeListener('active', active);
    // @ts-expect-error the result comes second
    this.on('completed', (each: Job<D, R, N>, result: Error) => void [each, result]);
    // @ts-expect-error no such event
    this.on('complete', () => {});
  }
}
export class LoggingQueue<D, R, N extends string> extends Queue<D, R, N> {
  log(): this {
    return this.on('waiting', (each: Job<D, R, N>) => void each.data).on('error', (error) => void error.message);
  }
}
export function watch<D, R>(worker: Worker<D, R>, seen: (each: Job<D, R>, result: R) => void): void {
  worker.on('completed', seen);
}
new LoggingWorker<Mail, boolean, string>('q', async () => true).on('completed', (each, result) => {
  holds<Equal<typeof each, Job<Mail, boolean, string>>>();
  holds<Equal<typeof result, boolean>>();
});
new Worker<Strict>('q', null).on('completed', (each, result) => {
  holds<Equal<typeof each, Job<1, 'x', 'a'> | Job<2, 'y', 'b'>>>();
  holds<Equal<typeof result, 'x' | 'y'>>();
});
// @ts-expect-error the map is not the data of its jobs
new Worker<Strict>('q', null).on('completed', (each: Job<Strict>) => void each);
// @ts-expect-error the data of another name
new Worker<Strict>('q', null).on('completed', (each: Job<1, 'x', 'a'>) => void each);
// @ts-expect-error the map is not the data of its jobs
new Queue<Strict>('q').on('waiting', (each: Job<Strict>) => void each);
new Worker<MailJob>('q', null).on('completed', (each, result) => {
  holds<Equal<typeof each, MailJob>>();
  holds<Equal<typeof result, boolean>>();
});
holds<Equal<Parameters<QueueListener['waiting']>, [job: Job]>>();
holds<Equal<Parameters<QueueListener<MailJob>['waiting']>, [job: MailJob]>>();

// ── schedules of a queue with a map ─────────────────────────────────────────────────────────────────────────────────────────
type Mapped = { a: { data: { to: string } }; b: { data: { week: number } } };
declare const scheduled: Queue<Mapped>;
void scheduled.upsertJobScheduler('n', { every: 1000 }, { name: 'a', data: { to: 'x' }, opts: { attempts: 3 } });
// @ts-expect-error without a template the jobs would be called n, which is not in the map
void scheduled.upsertJobScheduler('n', { every: 1000 });
// @ts-expect-error the same without a name
void scheduled.upsertJobScheduler('n', { every: 1000 }, { data: { to: 'x' } });
// @ts-expect-error not a name of the map
void scheduled.upsertJobScheduler('n', { every: 1000 }, { name: 'n', data: { to: 'x' } });
// @ts-expect-error the data of another job
void scheduled.upsertJobScheduler('n', { every: 1000 }, { name: 'b', data: { to: 'x' } });
void new Queue('q').upsertJobScheduler('n', { every: 1000 });
void new Queue<{ to: string }>('q').upsertJobScheduler('n', { pattern: '* * * * *' }, { data: { to: 'x' } });
export function scheduleAny<T, R, N extends string>(queue: Queue<T, R, N>): void {
  void queue.upsertJobScheduler('n', { every: 1000 });
}
// @ts-expect-error the schedule makes the ids of its jobs
void new Queue('q').upsertJobScheduler('n', { every: 1000, jobId: 'x' });

// ── mistakes are reported where they stand ──────────────────────────────────────────────────────────────────────────────────
new Worker('q', async () => 1, {
  // @ts-expect-error a misspelt option beside a function
  concurency: 5,
});
new Worker<Mapped>(
  'q',
  { a: async (job) => job.data.to, b: async (job) => job.data.week },
  {
    // @ts-expect-error a misspelt option beside a map of handlers
    concurency: 5,
  },
);
void scheduled.add('a', { to: 'x' }, { attempts: 3 });
// @ts-expect-error a misspelt option of a job of a map
void scheduled.add('a', { to: 'x' }, { atempts: 3 });

// ── graphs, waits, and resources ────────────────────────────────────────────────────────────────────────────────────────────
declare const flow: FlowProducer;
const graph = await flow.addGraph({
  nodes: { a: { name: 'x', queueName: 'q' }, b: { name: 'y', queueName: 'q' } },
  edges: [['a', 'b']],
});
holds<Equal<typeof graph, Record<'a' | 'b', Job>>>();
void flow.addGraph({
  nodes: { a: { name: 'x', queueName: 'q' } },
  // @ts-expect-error no node of this graph
  edges: [['a', 'c']],
});
declare const made: Record<string, GraphNode>;
void flow.addGraph({ nodes: made, edges: [['a', 'c']] });
holds<Equal<Awaited<ReturnType<typeof job.waitFor>>, unknown>>();
holds<Equal<typeof approval, { by: string }>>();
const approval = await job.waitFor<{ by: string }>('approval');

export async function useAll(): Promise<void> {
  await using queue = new Queue('q');
  await using worker = new Worker('q', async () => undefined);
  await using leader = new Leader('q');
  await using lock = await queue.takeLock('name');
  void [worker, leader, lock];
}
