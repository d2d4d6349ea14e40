// What a test of the lock lines works on: a store of its own, a queue, a view into the store, and workers of this process. All of it is
// closed and removed when the test ends.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connection, openStore, type Processor, Queue, type Store, Worker, type WorkerOptions } from 'holdfast';
import { onTestFinished } from 'vitest';
import { eventually, listenTo, type MomentLog, WORKER_EVENTS } from './acceptance-moments.js';

export type Engine = 'memory' | 'sqlite';

export interface Scene {
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
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const url = `sqlite:${join(folder, 'jobs.db')}`;
  const store = await openStore(engine === 'memory' ? 'memory:' : url);
  onTestFinished(() => store.close());
  const connection = engine === 'memory' ? store : url;
  const queue = new Queue('work', { connection });
  onTestFinished(() => queue.close());
  return { connection, folder, queue, store };
}

/** A worker of this process and what it tells. */
export function work(scene: Pick<Scene, 'connection'>, processor: Processor, options: WorkerOptions = {}): Working {
  const worker = new Worker('work', processor, { connection: scene.connection, ...options });
  onTestFinished(async () => {
    // A test that failed half-way must not leave a handler waiting, or its worker could not be closed.
    for (const gate of gates) gate.open();
    gates.clear();
    await worker.close();
  });
  return { worker, log: listenTo(worker, WORKER_EVENTS) };
}

const gates = new Set<Gate>();

/** Makes a handler last until the test says so. */
export class Gate {
  readonly opened: Promise<void>;
  #open: () => void = () => undefined;

  constructor() {
    this.opened = new Promise((resolve) => {
      this.#open = resolve;
    });
    gates.add(this);
  }

  open(): void {
    this.#open();
  }
}

/** How often the session that holds a job was renewed so far. */
export async function renewalsOf(store: Store, jobId: string): Promise<number> {
  const lock = await store.lockOf('work', jobId);
  const session = (await store.sessions('work')).find(({ id }) => id === lock?.session);
  if (session === undefined) throw new Error(`Nobody holds job ${jobId}.`);
  return session.renewals;
}

/** Resolves when the session that holds a job has been renewed `times` more. */
export async function renewed(store: Store, jobId: string, times: number): Promise<void> {
  const before = await renewalsOf(store, jobId);
  await eventually(`${times} more renewals for job ${jobId}`, async () => (await renewalsOf(store, jobId)) >= before + times);
}

/**
 * A job whose owner is gone: claimed by a session that nobody renews and that ends after `durationMs`. No worker may have a free slot
 * meanwhile, or it would take the job.
 */
export async function orphan({ queue, store }: Scene, durationMs: number, maxStalls = 1): Promise<string> {
  const job = await queue.add('orphan', {}, { lifo: true });
  const id = `gone-${job.id}`;
  await store.openSession({ queue: 'work', id, owner: { host: 'elsewhere', pid: 1, name: 'gone' }, durationMs, maxStalls });
  const { jobs } = await store.claim('work', { session: id, seq: 1, count: 1 });
  if (jobs[0]?.id !== job.id) throw new Error(`The session claimed job ${jobs[0]?.id} instead of ${job.id}.`);
  return job.id;
}
