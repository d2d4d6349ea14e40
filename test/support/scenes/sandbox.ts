// Workers of this process with the processors of test/support/processors, in threads and in processes.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { HoldfastError } from '../../../src/errors.js';
import type { Job } from '../../../src/handle/job.js';
import { Queue } from '../../../src/queue/queue.js';
import type { Store } from '../../../src/store/contract/index.js';
import type { WorkerOptions } from '../../../src/worker/options.js';
import { Worker } from '../../../src/worker/worker.js';
import { type Engine, scene } from './faulty-scene.js';
import { until } from '../wait/until.js';

export type Kind = 'threads' | 'processes';
export const KINDS: Kind[] = ['threads', 'processes'];

export function processor(name: string): string {
  return fileURLToPath(new URL(`../processors/${name}`, import.meta.url));
}

export interface SandboxScene {
  store: Store;
  name: string;
  queue: Queue;
  /** In a folder that is gone after the test. */
  file(name: string): string;
  worker(kind: Kind, options?: WorkerOptions, file?: string | URL): Watched;
}

export interface Watched {
  worker: Worker;
  errors: HoldfastError[];
  /** Adds a job and waits for its end: its result, or its error. */
  run(job: string, data?: unknown, options?: object): Promise<unknown>;
  end(jobId: string): Promise<unknown>;
}

export async function sandboxScene(engine: Engine): Promise<SandboxScene> {
  const { inner: store, queue: name } = await scene(engine);
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sandbox-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const queue = new Queue(name, { connection: store });
  onTestFinished(() => queue.close());
  return {
    store,
    name,
    queue,
    file: (file) => join(folder, file),
    worker: (kind, options = {}, file = processor('acts.mjs')) =>
      watched(new Worker(name, file, opts(store, kind, options)), queue),
  };
}

function opts(connection: Store, kind: Kind, options: WorkerOptions): WorkerOptions {
  return { connection, useWorkerThreads: kind === 'threads', ...options };
}

function watched(worker: Worker, queue: Queue): Watched {
  onTestFinished(() => worker.close(true));
  const errors: HoldfastError[] = [];
  const ends = new Map<string, unknown>();
  worker.on('error', (error) => errors.push(error as HoldfastError));
  worker.on('completed', ({ id }: Job, value: unknown) => ends.set(id, value));
  worker.on('failed', (job: Job | undefined, error: Error) => ends.set(job?.id ?? '', error));
  const end = async (jobId: string): Promise<unknown> => {
    await until(`the end of job ${jobId}: ${errors.map(({ message }) => message).join('; ')}`, () => ends.has(jobId));
    return ends.get(jobId);
  };
  return {
    worker,
    errors,
    end,
    run: async (job, data, options) => end((await queue.add(job, data, options)).id),
  };
}

/** Waits until a handler has written something, and returns it. */
export async function written(file: string, text = ''): Promise<string> {
  await until(`${file} to have ${text}`, () => existsSync(file) && readFileSync(file, 'utf8').includes(text));
  return readFileSync(file, 'utf8');
}
