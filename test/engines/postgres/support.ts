// What the tests of the PostgreSQL store share: servers, databases and proxies that are gone afterwards, and stores that are closed.
import { Client } from 'pg';
import { onTestFinished } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import { PostgresStore, type PostgresStoreOptions } from '../../../src/store/postgres/index.js';
import { type PostgresOptions, startPostgres } from '../../support/servers/postgres.js';
import { FaultProxy } from '../../support/servers/proxy.js';
import type { TestServer } from '../../support/servers/server.js';
import { emptyDatabase, type FreshDatabase, freshDatabase } from '../../support/servers/shared.js';
import { newJob } from '../../unit/store-samples.js';

export { newJob, newSession } from '../../unit/store-samples.js';

/** For what is rough; anything else shares a server with others (newDatabase). */
export async function newServer(options?: PostgresOptions): Promise<TestServer> {
  const server = await startPostgres(options);
  onTestFinished(() => server.close());
  return server;
}

/** The URL of a database on the shared server that has the schema of the store. */
export async function newDatabase(): Promise<string> {
  return dropped(await freshDatabase());
}

/** The URL of a database on the shared server with nothing in it: the first store that opens it makes the schema. */
export async function newEmptyDatabase(): Promise<string> {
  return dropped(await emptyDatabase());
}

function dropped({ url, drop }: FreshDatabase): string {
  onTestFinished(drop);
  return url;
}

export async function newProxy(target: { port: number }): Promise<FaultProxy> {
  const proxy = await FaultProxy.start(target);
  onTestFinished(() => proxy.close());
  return proxy;
}

/** Not opened. */
export function newStore(options: PostgresStoreOptions): PostgresStore {
  const store = new PostgresStore(options);
  onTestFinished(() => store.close());
  return store;
}

export async function openStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const store = newStore(options);
  await store.open();
  return store;
}

export async function newClient(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

export function newJobs(count: number): NewJob[] {
  return Array.from({ length: count }, () => newJob());
}

export function completed({ id, token }: ClaimedJob): Outcome {
  return { kind: 'completed', jobId: id, token, value: '1', keep: {} };
}

/** Cuts every connection of a store, but not that of the one who asks. */
export async function killConnections(client: Client): Promise<number> {
  const { rowCount } = await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'holdfast'`,
  );
  return rowCount ?? 0;
}

/** How many connections to this database wait for a lock. Not by pg_locks: other test files use other databases of the same server. */
export async function blocked(client: Client): Promise<number> {
  // In a transaction, the server shows what it saw first.
  await client.query('SELECT pg_stat_clear_snapshot()');
  const { rowCount } = await client.query(
    `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return rowCount ?? 0;
}

/** That the server had to resolve in this database. */
export async function deadlocks(url: string): Promise<number> {
  const client = await newClient(url);
  // Connections hand in their statistics when they have been idle for a moment.
  await client.query('SELECT pg_sleep(1.1)');
  const { rows } = await client.query<{ n: number }>(
    'SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()',
  );
  return rows[0]?.n ?? 0;
}

/** The same order for the same seed. */
export function shuffled<T>(list: T[], seed: number): T[] {
  return list
    .map((item, index) => [((index + 1) * 7_919 * seed) % 104_729, item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}
