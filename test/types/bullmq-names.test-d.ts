// Compiled, never run: names and forms that programs written for BullMQ use, generic wrappers, and maps of handlers.
import {
  type BaseJobOptions,
  type BulkJobOptions,
  type ConnectionOptions,
  type GetNextJobOptions,
  type Job,
  type JobOf,
  type ObliterateOpts,
  type Processor,
  Queue,
  type QueueBaseOptions,
  QueueEvents,
  type QueueEventsListener,
  type QueueListener,
  type QueueOptions,
  type RateLimiterOptions,
  type RedisOptions,
  type RetryJobOpts,
  Worker,
  type WorkerListener,
  type WorkerOptions,
} from '../../src/index.js';
import type { Any } from '../../src/job/typing.js';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function holds<_T extends true>(): void {}

// ── options ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
const redis: RedisOptions = { host: 'localhost', port: 6379, password: 'x', maxRetriesPerRequest: null };
const connection: ConnectionOptions = redis;
const base: QueueBaseOptions = { connection, prefix: 'app', skipVersionCheck: true };
const queueOptions: QueueOptions = { ...base, skipMetasUpdate: true, defaultJobOptions: { attempts: 3 } };
const limiter: RateLimiterOptions = { max: 1, duration: 1000 };
const workerOptions: WorkerOptions = { ...base, limiter, maximumRateLimitDelay: 5 };
const baseJob: BaseJobOptions = { jobId: 'a', delay: 5 };
const bulk: BulkJobOptions = baseJob;
const obliterate: ObliterateOpts = { force: true };
const retry: RetryJobOpts = { count: 5 };
const next: GetNextJobOptions = { block: false };

const queue = new Queue('q', queueOptions);
await queue.addBulk([{ name: 'x', data: 1, opts: bulk }]);
await queue.obliterate(obliterate);
await queue.retryJobs(retry);
await new Worker('q', null, workerOptions).getNextJob('token', next);

// ── listeners ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
interface Mail {
  to: string;
}
const onCompleted: WorkerListener<Mail, boolean>['completed'] = (job, result) => {
  holds<Equal<typeof result, boolean>>();
  job.data.to.toUpperCase();
};
new Worker<Mail, boolean>('q', async () => true).on('completed', onCompleted);
const onFailed: QueueEventsListener['failed'] = ({ jobId, failedReason }, id) => console.log(jobId, failedReason, id);
new QueueEvents('q').on('failed', onFailed);
const onWaiting: QueueListener<Job<Mail>>['waiting'] = (job) => job.data.to.toUpperCase();
new Queue<Mail>('q').on('waiting', onWaiting);

// ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
declare const mail: Job<Mail, boolean, 'welcome'>;
holds<Equal<typeof mail.failedReason, string>>();
const json = mail.toJSON();
holds<Equal<typeof json.data, Mail>>();
holds<Equal<typeof json.returnvalue, boolean>>();
holds<Equal<typeof json.name, 'welcome'>>();
holds<Equal<typeof json.failedReason, string>>();
holds<Equal<typeof json.id, string>>();
// @ts-expect-error not a field of a job
void json.nothing;
mail.returnvalue = true;
// @ts-expect-error the result is a boolean
mail.returnvalue = 'yes';

// ── a processor, called by hand ─────────────────────────────────────────────────────────────────────────────────────────────
const processor: Processor<Mail, boolean> = async (job, token, signal) => job.data.to === token || signal?.aborted === true;
const result: boolean = await processor(mail as unknown as Job<Mail, boolean>);
void result;

// ── generic wrappers ────────────────────────────────────────────────────────────────────────────────────────────────────────
export class LoggedWorker<T = Any, R = Any, N extends string = string> extends Worker<T, R, N> {
  constructor(name: string, run: Processor<T, R, N>, opts?: WorkerOptions) {
    super(name, run, opts);
    this.on('completed', (job, value) => console.log(job.id, job.name, job.data, value));
    this.on('failed', (job, error) => console.log(job?.id, error.message));
  }
}
export function inlineWorker<T, R>(name: string, run: (job: Job<T, R>) => Promise<R>): Worker<T, R> {
  const worker = new Worker<T, R>(name, async (job) => run(job), { concurrency: 5 });
  worker.on('completed', (job) => console.log(job.id, job.data));
  return worker;
}
export function valueWorker<T>(name: string, run: (job: Job<T>) => Promise<void>): Worker<T> {
  return new Worker<T>(name, run);
}
export function typedWorker<T, R, N extends string>(name: string, run: Processor<T, R, N>): Worker<T, R, N> {
  return new Worker<T, R, N>(name, run, { concurrency: 5 });
}
export abstract class Base<T> {
  readonly queue: Queue<T>;
  readonly worker: Worker<T>;
  constructor(name: string) {
    this.queue = new Queue<T>(name);
    this.worker = new Worker<T>(name, (job) => this.process(job));
  }
  abstract process(job: Job<T>): Promise<unknown>;
  async send(data: T): Promise<string> {
    const job = await this.queue.add('send', data, { attempts: 3 });
    return job.id;
  }
}

// ── a map of handlers ───────────────────────────────────────────────────────────────────────────────────────────────────────
type Mails = {
  welcome: { data: { to: string }; result: boolean };
  digest: { data: { week: number }; result: number };
};
new Worker<Mails>('mail', {
  welcome: async (job, token, signal) => {
    holds<Equal<typeof job, Job<{ to: string }, boolean, 'welcome'>>>();
    return token !== '' && !signal.aborted && job.data.to !== '';
  },
  digest: (job) => job.data.week,
});
// @ts-expect-error a handler is missing
new Worker<Mails>('mail', { welcome: async () => true });
// @ts-expect-error the result of another name
new Worker<Mails>('mail', { welcome: async () => true, digest: async () => true });
new Worker('mail', { anything: async (job) => job.data.whatever });
new Worker<Mail, boolean, 'a' | 'b'>('mail', { a: async (job) => job.data.to === '', b: () => true });

// Defaults stand for what is left out.
holds<Equal<JobOf<Mails>['name'], 'welcome' | 'digest'>>();
holds<Equal<JobOf<Mail>, Job<Mail, Any, string>>>();
