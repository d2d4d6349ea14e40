// What a test of the lock lines works on: a store of its own, a queue, a view into the store, and workers of this process. All of it is
// closed and removed when the test ends.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connection, type Job, type JobsOptions, openStore, Queue, type Store, Worker, type WorkerOptions } from 'holdfast';
import { onTestFinished } from 'vitest';
import { openGates } from '../wait/gate.js';
import { listenTo, type MomentLog, WORKER_EVENTS } from '../wait/moments.js';
import { inThisRun } from '../run/matrix.js';
import { paced } from '../wait/pace.js';
import { freshDatabase, type SharedServer, shared } from '../servers/shared.js';
import { until } from '../wait/until.js';

/** Where a test finds an empty store of its own; on a server that is shared, under keys that nobody else uses. */
const URLS = {
  memory: async () => 'memory:',
  sqlite: async (folder: string) => `sqlite:${join(folder, 'jobs.db')}`,
  redis: () => withPrefix('redis'),
  'redis-cluster': () => withPrefix('redis-cluster'),
  postgres: () => inNewDatabase(),
} satisfies Record<string, (folder: string) => Promise<string>>;

export type Engine = keyof typeof URLS;

/** Those behind a network. */
export const SERVER_ENGINES: Engine[] = inThisRun(['redis', 'redis-cluster', 'postgres']);
/** Those that other processes and the lock thread can reach. */
export const SHARED_ENGINES: Engine[] = inThisRun(['sqlite', 'redis', 'redis-cluster', 'postgres']);
export const ENGINES: Engine[] = ['memory', ...SHARED_ENGINES];
/** For lines about locks between processes, which calls to several servers do not make any different. */
export const LOCK_ENGINES: Engine[] = inThisRun(['sqlite', 'redis', 'postgres']);

export interface Scene {
  /** The store by name, for another process. In memory this is another store. */
  url: string;
  /** What workers connect to. */
  connection: Connection;
  /** Empty, and gone after the test. */
  folder: string;
  queue: Queue;
  /** The store seen from beside: not the workers' own connection where there can be another. */
  store: Store;
}

export interface Working {
  worker: Worker;
  log: MomentLog;
}

export async function newScene(engine: Engine): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-s0-'));
  // A worker that was closed by force closes the file in the background.
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  const url = await URLS[engine](folder);
  const store = await openStore(url);
  onTestFinished(() => store.close());
  const connection = engine === 'memory' ? store : url;
  const queue = new Queue('work', { connection });
  onTestFinished(() => queue.close());
  return { url, connection, folder, queue, store };
}

async function withPrefix(server: SharedServer): Promise<string> {
  const url = new URL(await shared(server));
  url.searchParams.set('prefix', `acceptance-${randomUUID()}`);
  return url.href;
}

async function inNewDatabase(): Promise<string> {
  const { url, drop } = await freshDatabase();
  onTestFinished(drop);
  return url;
}

/** A worker of this process and what it tells. */
export function work(
  scene: Pick<Scene, 'connection'>,
  processor: (job: Job, token: string, signal: AbortSignal) => unknown,
  options: WorkerOptions = {},
): Working {
  const worker = new Worker('work', processor, { connection: scene.connection, ...options });
  onTestFinished(async () => {
    // A test that failed half-way must not leave a handler waiting, or its worker could not be closed.
    openGates();
    await worker.close();
  });
  return { worker, log: listenTo(worker, WORKER_EVENTS) };
}

/** How often the session that holds a job was renewed so far. */
export async function renewalsOf(store: Store, jobId: string): Promise<number> {
  const lock = (await store.locks('work', { jobIds: [jobId] }))[0];
  const session = (await store.sessions('work')).find(({ id }) => id === lock?.session);
  if (session === undefined) throw new Error(`Nobody holds job ${jobId}.`);
  return session.renewals;
}

/** Resolves when the session that holds a job has been renewed `times` more. */
export async function renewed(store: Store, jobId: string, times: number): Promise<void> {
  const before = await renewalsOf(store, jobId);
  await until(`${times} more renewals for job ${jobId}`, async () => (await renewalsOf(store, jobId)) >= before + times);
}

/**
 * A job whose owner is gone: claimed by a session that is not renewed and that ends after `durationMs`, or later on a machine that cannot claim
 * within so short a time. No worker may have a free slot meanwhile, or it would take the job.
 */
export async function orphan(
  { queue, store }: Scene,
  durationMs: number,
  maxStalls = 1,
  options: JobsOptions = {},
): Promise<string> {
  const job = await queue.add('orphan', {}, { lifo: true, ...options });
  for (let ms = paced(durationMs); ; ms *= 2) {
    const id = `gone-${job.id}-${ms}`;
    const owner = { host: 'elsewhere', pid: 1, name: 'gone', instance: 'i' };
    await store.openSession({ queue: 'work', id, owner, durationMs: ms, maxStalls, slots: 1 });
    const { jobs, sessionAlive } = await store.claim('work', { session: id, seq: 1, count: 1 });
    if (jobs[0]?.id === job.id) return job.id;
    if (sessionAlive) throw new Error(`The session claimed job ${jobs[0]?.id} instead of ${job.id}.`);
  }
}
