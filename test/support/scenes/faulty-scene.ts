// A queue on a store that fails on command, and workers on it that are closed when the test ends. For tests of the inside:
// everything comes from src/.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Job } from '../../../src/handle/job.js';
import type { JobsOptions } from '../../../src/job/options.js';
import type { JobRecord } from '../../../src/job/record.js';
import type { StoredState } from '../../../src/job/state.js';
import type { Store } from '../../../src/store/contract/index.js';
import { MemoryStore } from '../../../src/store/memory/index.js';
import { PostgresStore } from '../../../src/store/postgres/index.js';
import { RedisStore } from '../../../src/store/redis/index.js';
import { SqliteStore } from '../../../src/store/sqlite/index.js';
import { FaultyStore } from '../../../src/testing/faulty-store.js';
import type { WorkerOptions } from '../../../src/worker/options.js';
import { Worker } from '../../../src/worker/worker.js';
import { until } from '../wait/until.js';
import { inThisRun } from '../run/matrix.js';
import { freshDatabase, shared } from '../servers/shared.js';

const STORES = {
  memory: async () => new MemoryStore(),
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-faults-'));
    // A worker that was closed by force closes the file in the background.
    onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
    return new SqliteStore({ path: join(folder, 'jobs.db') });
  },
  redis: async () => new RedisStore({ url: await shared('redis') }),
  'redis-cluster': async () => new RedisStore({ url: await shared('redis-cluster') }),
  postgres: async () => {
    const { url, drop } = await freshDatabase();
    onTestFinished(drop);
    return new PostgresStore({ url });
  },
} satisfies Record<string, () => Promise<Store>>;

export type Engine = keyof typeof STORES;
export const ENGINES = inThisRun(Object.keys(STORES) as Engine[]);

export type Handler = (job: Job, token: string, signal: AbortSignal) => unknown;

export interface WatchedWorker {
  worker: Worker;
  /** What its `error` listener got, in order. */
  errors: Error[];
}

export interface Scene {
  queue: string;
  /** What workers get as connection. */
  store: FaultyStore;
  /** The same store without faults, for adding and looking. */
  inner: Store;
  add(options?: JobsOptions): Promise<string>;
  record(id: string): Promise<JobRecord | undefined>;
  /** Waits until the job is there. */
  reaches(id: string, state: StoredState): Promise<JobRecord>;
  worker(handler: Handler | null, options?: WorkerOptions): WatchedWorker;
}

export async function scene(engine: Engine): Promise<Scene> {
  const queue = `faults-${randomUUID()}`;
  const inner: Store = await STORES[engine]();
  const store = new FaultyStore(inner);
  await store.open();
  const workers: Worker[] = [];
  onTestFinished(async () => {
    store.clear();
    await Promise.all(workers.map((worker) => worker.close(true)));
    await inner.close();
  });
  const record = async (id: string): Promise<JobRecord | undefined> => (await inner.jobs(queue, [id])).jobs[0];
  return {
    queue,
    store,
    inner,
    record,
    add: async (options = {}) => {
      const { jobId, priority = 0, delay = 0, lifo = false } = options;
      const job = {
        name: 'job',
        data: '{}',
        opts: JSON.stringify(options),
        priority,
        delayMs: delay,
        lifo,
        timestamp: Date.now(),
      };
      const [reply] = await inner.add(queue, [jobId === undefined ? job : { ...job, id: jobId }], {
        caller: randomUUID(),
        seq: 1,
      });
      return reply?.id ?? '';
    },
    reaches: (id, state) =>
      until(`job ${id} to be ${state}`, async () => {
        const found = await record(id);
        return found?.state === state ? found : undefined;
      }),
    worker: (handler, options = {}) => {
      const worker = new Worker(queue, handler, { connection: store, ...options });
      const errors: Error[] = [];
      worker.on('error', (error) => errors.push(error));
      workers.push(worker);
      return { worker, errors };
    },
  };
}

/** The next time that a worker emits this. */
export function next(worker: Worker, event: string): Promise<unknown[]> {
  return new Promise((resolve) => {
    (worker as NodeJS.EventEmitter).once(event, (...args: unknown[]) => resolve(args));
  });
}

export function messagesOf(errors: Error[], text: string): string[] {
  return errors.map(({ message }) => message).filter((message) => message.includes(text));
}
