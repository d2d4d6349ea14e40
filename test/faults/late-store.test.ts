// A store that comes after the first add: `add` waits for as long as it promises, says once why it waits, and ends when the queue is closed.
import Database from 'better-sqlite3';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { HoldfastError } from '../../src/errors.js';
import { Queue } from '../../src/queue/queue.js';
import { newServer as newPostgres } from '../engines/postgres/support.js';
import { newServer as newRedis } from '../engines/redis/support.js';
import { paced } from '../support/wait/pace.js';
import { outcomeOf, until } from '../support/wait/until.js';

interface LateStore {
  connection: string;
  comes(): Promise<unknown>;
}

const STORES: Record<string, () => Promise<LateStore>> = {
  redis: async () => {
    const server = await newRedis();
    await server.kill();
    return { connection: server.url, comes: () => server.restart() };
  },
  postgres: async () => {
    const server = await newPostgres();
    await server.kill();
    return { connection: server.url, comes: () => server.restart() };
  },
  // Another program holds the lock of the file.
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-late-'));
    const file = join(folder, 'jobs.db');
    const other = new Database(file);
    onTestFinished(() => {
      other.close();
      rmSync(folder, { recursive: true, force: true });
    });
    other.exec('BEGIN EXCLUSIVE');
    return { connection: `sqlite:${file}?busyTimeoutMs=50`, comes: () => Promise.resolve(other.exec('ROLLBACK')) };
  },
};

describe.each(Object.keys(STORES))('a %s store that is not there yet', (engine) => {
  const late = () => (STORES[engine] as () => Promise<LateStore>)();

  function newQueue(connection: string, addTimeoutMs?: number): { queue: Queue; errors: HoldfastError[] } {
    const queue = new Queue('late', addTimeoutMs === undefined ? { connection } : { connection, addTimeoutMs });
    onTestFinished(() => queue.close());
    const errors: HoldfastError[] = [];
    queue.on('error', (error) => errors.push(error as HoldfastError));
    return { queue, errors };
  }

  test('is waited for: jobs that were added before it came are added once it is there', async () => {
    const { connection, comes } = await late();
    const { queue, errors } = newQueue(connection);
    const adding = Promise.all([queue.add('first', {}), queue.add('second', {})]);
    adding.catch(() => undefined);
    await until('an error', () => errors.length > 0, 5_000);
    expect(await outcomeOf(adding, 600)).toBe('pending');
    await comes();
    const jobs = await adding;
    expect(jobs.map(({ name }) => name)).toEqual(['first', 'second']);
    expect(await queue.getWaitingCount()).toBe(2);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ retryable: true, store: engine });
  });

  test('is waited for no longer than addTimeoutMs, and the error says why', async () => {
    const { connection } = await late();
    const { queue } = newQueue(connection, 700);
    const begun = performance.now();
    const error = await queue.add('job', {}).catch((thrown: unknown) => thrown);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(650);
    expect(error).toMatchObject({ retryable: true, store: engine });
  });

  test('is not waited for by a queue that is closed', async () => {
    const { connection } = await late();
    const { queue, errors } = newQueue(connection);
    const adding = queue.add('job', {}).catch((thrown: unknown) => thrown);
    await until('an error', () => errors.length > 0, 5_000);
    expect(await outcomeOf(queue.close(), paced(5_000))).toBe('resolved');
    expect(await adding).toMatchObject({ retryable: true, store: engine });
  });
});
