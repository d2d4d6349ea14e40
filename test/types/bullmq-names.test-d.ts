// Compiled, never run: names and forms that programs written for BullMQ use, generic wrappers, and maps of handlers.
import holdfast, {
  type BaseJobOptions,
  type BulkJobOptions,
  type ConnectionOptions,
  type DeduplicationOptions,
  type GetNextJobOptions,
  Job,
  type JobOf,
  type JobSchedulerJson,
  type JobSchedulerTemplateOptions,
  type Metrics,
  type MetricsOptions,
  MetricsTime,
  type ObliterateOpts,
  type Processor,
  Queue,
  type QueueBaseOptions,
  QueueEvents,
  type QueueEventsListener,
  QueueEventsProducer,
  type QueueListener,
  type QueueOptions,
  type RateLimiterOptions,
  type RedisClient,
  RedisConnection,
  type RedisOptions,
  type RepeatableJob,
  type RepeatOptions,
  type RepeatStrategy,
  type RetryJobOpts,
  Worker,
  type WorkerListener,
  type WorkerOptions,
} from '../../src/index.js';
import type { Redis } from 'ioredis';
import type { Any } from '../../src/job/typing.js';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function holds<_T extends true>(): void {}

// ── options ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
const redis: RedisOptions = { host: 'localhost', port: 6379, password: 'x', maxRetriesPerRequest: null };
const connection: ConnectionOptions = redis;
const base: QueueBaseOptions = { connection, prefix: 'app', skipVersionCheck: true };
const queueOptions: QueueOptions = { ...base, skipMetasUpdate: true, defaultJobOptions: { attempts: 3 } };
const limiter: RateLimiterOptions = { max: 1, duration: 1000 };
const metrics: MetricsOptions = { maxDataPoints: MetricsTime.ONE_WEEK * 2 };
const workerOptions: WorkerOptions = { ...base, limiter, metrics, maximumRateLimitDelay: 5 };
const minutes: MetricsTime = MetricsTime.ONE_HOUR;
void minutes;
const baseJob: BaseJobOptions = { jobId: 'a', delay: 5 };
const unique: DeduplicationOptions = { id: 'a', ttl: 5, extend: true, replace: true };
const bulk: BulkJobOptions = { ...baseJob, deduplication: unique };
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
new QueueEvents('q').on('deduplicated', ({ jobId, deduplicationId, deduplicatedJobId }, id) => {
  holds<Equal<typeof deduplicatedJobId, string>>();
  console.log(jobId, deduplicationId, id);
});
interface CustomListener extends QueueEventsListener {
  example: (args: { custom: string }, id: string) => void;
  other: (args: { n: number }, id: string) => void;
}
interface CustomPayload {
  eventName: string;
  custom: string;
}
new QueueEvents('q')
  .on<CustomListener>('example', async ({ custom }: { custom: string }) => console.log(custom))
  .on<CustomListener>('completed', ({ jobId }: { jobId: string }) => console.log(jobId))
  .on<CustomListener, 'other'>('other', ({ n }, id) => console.log(n.toFixed(), id.length))
  .once<CustomListener>('example', () => undefined)
  .off<CustomListener>('example', () => undefined);
// @ts-expect-error not an event of the listener
new QueueEvents('q').on<CustomListener>('nothing', () => undefined);
// @ts-expect-error not an event of a queue
new QueueEvents('q').on('example', () => undefined);
// @ts-expect-error the event has other fields
new QueueEvents('q').on<CustomListener, 'other'>('other', ({ custom }: { custom: string }) => custom);
new QueueEvents('q', { listed: true });
const producer = new QueueEventsProducer('q', { connection });
void producer.publishEvent<CustomPayload>({ eventName: 'example', custom: 'x' });
void producer.publishEvent({ eventName: 'example', n: 5 }, 1000);
// @ts-expect-error the name is missing
void producer.publishEvent({ custom: 'x' });
// @ts-expect-error the payload has another type
void producer.publishEvent<CustomPayload>({ eventName: 'example', custom: 5 });
holds<Equal<Awaited<ReturnType<Queue['getMetrics']>>, Metrics>>();
holds<Equal<Parameters<Queue['getMetrics']>[0], 'completed' | 'failed'>>();
holds<Equal<Awaited<ReturnType<Queue['getGlobalRateLimit']>>, { max: number; duration: number } | null>>();
holds<Equal<Awaited<ReturnType<Queue['getRateLimitTtl']>>, number>>();
holds<Equal<Awaited<ReturnType<Queue['isMaxed']>>, boolean>>();
const listeners: Record<string, string>[] = await queue.getQueueEvents();
void listeners;
holds<Equal<Awaited<ReturnType<Queue['getDeduplicationJobId']>>, string | null>>();
holds<Equal<Awaited<ReturnType<Queue['removeDeduplicationKey']>>, number>>();
holds<Equal<Awaited<ReturnType<Job['removeDeduplicationKey']>>, boolean>>();
holds<Equal<Job['deduplicationId'], string | undefined>>();
const repeatOptions: RepeatOptions = { pattern: '0 0 * * *', tz: 'UTC', limit: 5, immediately: true };
const templateOptions: JobSchedulerTemplateOptions = { attempts: 3 };
// @ts-expect-error the schedule decides the id
const refusedOptions: JobSchedulerTemplateOptions = { jobId: 'x' };
const repeatStrategy: RepeatStrategy = (millis, opts, name) => (opts.pattern === name ? undefined : millis + 1);
void new Queue<Mail>('q', { settings: { repeatStrategy } }).upsertJobScheduler('s', repeatOptions, {
  data: { to: 'a' },
  opts: templateOptions,
});
// @ts-expect-error the data of the queue has another type
void new Queue<Mail>('q').upsertJobScheduler('s', { every: 1000 }, { data: { nobody: 1 } });
holds<Equal<Awaited<ReturnType<Queue['getJobScheduler']>>, JobSchedulerJson | undefined>>();
holds<Equal<Awaited<ReturnType<Queue['getRepeatableJobs']>>, RepeatableJob[]>>();
holds<Equal<Awaited<ReturnType<Queue['removeJobScheduler']>>, boolean>>();
holds<Equal<Job['repeatJobKey'], string | undefined>>();
void refusedOptions;
const onWaiting: QueueListener<Job<Mail>>['waiting'] = (job) => job.data.to.toUpperCase();
void new Queue<{ to: string }, number, 'mail', { to: string }, number, 'mail'>('q').add('mail', { to: 'a' });
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

// ── names that programs mention and Holdfast needs no longer ────────────────────────────────────────────────────────────────
declare const someWorker: Worker;
holds<Equal<typeof someWorker.id, string>>();
declare const failing: Job;
holds<Equal<typeof failing.deferredFailure, string | undefined>>();
someWorker.on('ioredis:close', () => undefined);
new Queue('q').on('ioredis:close', () => undefined);
new QueueEvents('q').on('ioredis:close', () => undefined);
const client: RedisClient = await queue.client;
await client.set('key', 'value');
const shared: Redis = await new RedisConnection({ host: 'localhost' }, { blocking: false }).client;
const asClient: RedisClient = shared;
void asClient;
class OwnConnection extends RedisConnection {}
await new OwnConnection().close();
const unadded: Job<Mail> = new Job<Mail>(queue, 'mail', { to: 'a' }, { attempts: 3 }, 'id');
void unadded;
// @ts-expect-error the data has another type
new Job<Mail>(queue, 'mail', { nobody: 1 });
new holdfast.Queue<Mail>('q');
holds<Equal<typeof holdfast.Worker, typeof Worker>>();
