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

export const TYPES = `import { HoldfastError, Queue, Worker, type ErrorCode, type Job } from 'holdfast';
import * as testing from 'holdfast/testing';

interface Mail { to: string }

export const queue = new Queue<Mail>('mail', { connection: 'sqlite:jobs.db' });
export const worker = new Worker<Mail, string>('mail', async (job, token, signal) => {
  const to: string = job.data.to;
  signal?.throwIfAborted();
  return to + (token ?? '');
});
export async function add(): Promise<Job<Mail>> {
  // @ts-expect-error: the data has no such field
  await queue.add('welcome', { nobody: 1 });
  return queue.add('welcome', { to: 'ada' }, { attempts: 3, backoff: { type: 'exponential', delay: 100 } });
}
export function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof HoldfastError ? error.code : undefined;
}
export { testing };
`;
