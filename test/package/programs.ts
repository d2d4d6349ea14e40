// What the installed package is used for, as the text of programs. Each prints one line of JSON.

const namesOf = `const namesOf = (module) =>
  Object.keys(module).filter((name) => !['default', 'module.exports', '__esModule'].includes(name)).sort();`;

/** Prints the names that each given module exports, or the code of the error that loading it threw. */
export const EXPORTS_ESM = `${namesOf}
const found = {};
for (const specifier of JSON.parse(process.argv[2])) {
  const json = specifier.endsWith('.json');
  try {
    const module = await import(specifier, json ? { with: { type: 'json' } } : {});
    found[specifier] = namesOf(json ? module.default : module);
  } catch (error) {
    found[specifier] = error.code ?? String(error);
  }
}
console.log(JSON.stringify(found));
`;

export const EXPORTS_CJS = `${namesOf}
const found = {};
for (const specifier of JSON.parse(process.argv[2])) {
  try {
    found[specifier] = namesOf(require(specifier));
  } catch (error) {
    found[specifier] = error.code ?? String(error);
  }
}
console.log(JSON.stringify(found));
`;

const job = `const threads = [];
subscribe('worker_threads', ({ worker }) => threads.push(worker));
const errors = [];
const connection = 'sqlite:jobs.db';
const queue = new Queue('mail', { connection });
const worker = new Worker('mail', async (job) => 'hello ' + job.data.to, { connection, useDedicatedLockThread: true });
worker.on('error', (error) => errors.push(String(error)));
const completed = new Promise((resolve) => worker.on('completed', (_job, value) => resolve(value)));
`;

export const JOB_ESM = `import { subscribe } from 'node:diagnostics_channel';
import { Queue, Worker } from 'holdfast';
${job}
await queue.add('welcome', { to: 'ada' });
const value = await completed;
await worker.close();
await queue.close();
console.log(JSON.stringify({ value, threads: threads.length, errors }));
`;

export const JOB_CJS = `const { subscribe } = require('node:diagnostics_channel');
const { Queue, Worker } = require('holdfast');
${job}
async function main() {
  await queue.add('welcome', { to: 'ada' });
  const value = await completed;
  await worker.close();
  await queue.close();
  console.log(JSON.stringify({ value, threads: threads.length, errors }));
}
main();
`;

const sandbox = `async function main() {
  const found = { errors: [] };
  for (const useWorkerThreads of [true, false]) {
    const name = 'files-' + useWorkerThreads;
    const connection = 'sqlite:files.db';
    const queue = new Queue(name, { connection });
    const worker = new Worker(name, process.argv[2], { connection, useWorkerThreads });
    worker.on('error', (error) => found.errors.push(error.message));
    found[useWorkerThreads] = await new Promise((resolve) => {
      worker.on('completed', (_job, value) => resolve(value));
      worker.on('failed', (_job, error) => resolve(error.message));
      void queue.add('welcome', 'ada');
    });
    await worker.close();
    await queue.close();
  }
  console.log(JSON.stringify(found));
}
main();
`;

/** Runs a processor in a file, whose path is the argument. */
export const SANDBOX_ESM = `import { Queue, Worker } from 'holdfast';
${sandbox}`;
export const SANDBOX_CJS = `const { Queue, Worker } = require('holdfast');
${sandbox}`;

/**
 * For programs that bundlers have put together: runs a job once it is known who renews the locks, the thread or, because the thread
 * cannot start, the event loop.
 */
export const JOB_OF_A_BUNDLE = `async function runJob(queueName, renewer) {
  const connection = process.env.CONNECTION;
  const errors = [];
  const queue = new Queue(queueName, { connection });
  const worker = new Worker(queueName, async (job) => 'hello ' + job.data.to, { connection });
  worker.on('error', (error) => errors.push(error.message));
  const completed = new Promise((resolve) => worker.on('completed', (_job, value) => resolve(value)));
  const isKnown = () => errors.length > 0 || (renewer === 'thread' && worker.health().lockThread === 'thread');
  while (!isKnown()) await new Promise((resolve) => setTimeout(resolve, 20));
  await queue.add('welcome', { to: 'ada' });
  const value = await completed;
  const { lockThread } = worker.health();
  await worker.close();
  await queue.obliterate({ force: true });
  await queue.close();
  return { value, lockThread, errors };
}
`;
/** What it returns where the thread renews. */
export const JOB_OF_A_BUNDLE_RAN = { value: 'hello ada', lockThread: 'thread', errors: [] };

/**
 * Loads each given module by import and by require, then runs a job whose queue came by one way and whose worker by the other.
 * Prints what is not the same in both, how the job failed, and how many threads were started.
 */
export const BOTH_BUILDS = `import { subscribe } from 'node:diagnostics_channel';
import { createRequire } from 'node:module';
import { setTimeout } from 'node:timers/promises';
const require = createRequire(import.meta.url);
const others = [];
for (const specifier of JSON.parse(process.argv[2])) {
  const imported = await import(specifier);
  const required = require(specifier);
  for (const name of Object.keys(imported)) {
    if (name !== 'default' && name !== 'module.exports' && imported[name] !== required[name]) others.push(specifier + ': ' + name);
  }
}
const threads = [];
subscribe('worker_threads', ({ worker }) => threads.push(worker));
const one = await import('holdfast');
const two = require('holdfast');
const queue = new one.default.Queue('both', { connection: 'memory:' });
const worker = new two.default.Worker('both', async () => {
  throw new one.UnrecoverableError('unrecoverable');
}, { connection: 'memory:' });
const failed = new Promise((resolve) => worker.on('failed', (_job, error) => resolve(error.message)));
await queue.add('job', {}, { attempts: 3 });
const value = await failed;
const workers = [one, two].map(({ Worker }) => new Worker('files', async () => {}, { connection: 'sqlite:both.db' }));
await Promise.all(workers.map((each) => each.waitUntilReady()));
while (workers.some((each) => each.health().lockThread !== 'thread')) await setTimeout(10);
await Promise.all([worker, queue, ...workers].map((each) => each.close()));
console.log(JSON.stringify({ others, value, threads: threads.length }));
`;

export const TYPES = `import holdfast, { HoldfastError, Queue, Worker, type ErrorCode, type Job, type Processor, type QueueListener, type WorkerOptions } from 'holdfast';
import * as testing from 'holdfast/testing';

interface Mail { to: string }

export const queue = new Queue<Mail>('mail', { connection: 'sqlite:jobs.db' });
export const worker = new Worker<Mail, string>('mail', async (job, token, signal) => {
  const to: string = job.data.to;
  signal?.throwIfAborted();
  return to + (token ?? '');
});
export const named: Queue<Mail> = new holdfast.Queue<Mail>('mail', { connection: 'sqlite:jobs.db' });
export async function add(): Promise<Job<Mail>> {
  // @ts-expect-error: the data has no such field
  await queue.add('welcome', { nobody: 1 });
  return queue.add('welcome', { to: 'ada' }, { attempts: 3, backoff: { type: 'exponential', delay: 100 } });
}
export function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof HoldfastError ? error.code : undefined;
}
export class LoggingWorker<D = any, R = any, N extends string = string> extends Worker<D, R, N> {
  constructor(name: string, processor: Processor<D, R, N>, options?: WorkerOptions) {
    super(name, processor, options);
    this.on('completed', (job: Job<D, R, N>, result: R) => void [job.data, result]);
    this.on('failed', (job: Job<D, R, N> | undefined, error: Error) => void [job?.failedReason, error]);
  }
}
export class LoggingQueue<D, R, N extends string> extends Queue<D, R, N> {
  log = (): this => this.on('waiting', (job: Job<D, R, N>) => void job.data);
}
type Mails = { welcome: { data: Mail; result: boolean }; digest: { data: { week: number }; result: string } };
export const mails = new Worker<Mails>('mail', null).on('completed', (job, result) => {
  const sent: boolean | string = result;
  if (job.name === 'digest') return void [job.data.week.toFixed(), sent];
});
// @ts-expect-error: the map is not the data of its jobs
mails.on('completed', (job: Job<Mails>) => void job);
export const waiting: QueueListener['waiting'] = (job: Job) => void job.id;
export { testing };
`;
