// The servers that all test files of a run share: ask here for their URLs. Files run at the same time, so nobody may flush, kill or
// reconfigure them, and each uses a queue name, prefix or database of its own. For anything rougher, start a server of your own
// (startRedis, startRedisCluster, startPostgres).
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { Client } from 'pg';

/** 'postgres-template' is a database on the server 'postgres'. */
export type SharedServer = 'redis' | 'redis-cluster' | 'postgres' | 'postgres-template';
export type Reply = { url: string } | { error: string };

/** The environment variable with the port where global.ts answers. */
export const OFFICE = 'HOLDFAST_TEST_SERVERS_PORT';

/** The URL of a server, which is started if it does not run yet. */
export async function shared(server: SharedServer): Promise<string> {
  const port = process.env[OFFICE];
  if (port === undefined) throw new Error('Nobody starts servers: name test/support/servers/global.ts as globalSetup of vitest.');
  const socket = connect(Number(port), '127.0.0.1');
  socket.write(server);
  const reply = JSON.parse(await text(socket)) as Reply;
  if ('error' in reply) throw new Error(reply.error);
  return reply.url;
}

export interface FreshDatabase {
  url: string;
  /** Closes what is connected to it, too. */
  drop(): Promise<void>;
}

/** A database on the shared PostgreSQL with the schema of the store in it, but no queue. */
export async function freshDatabase(): Promise<FreshDatabase> {
  const template = new URL(await shared('postgres-template')).pathname.slice(1);
  return newDatabase(await shared('postgres'), template);
}

/** A database on the shared PostgreSQL with nothing in it. */
export async function emptyDatabase(): Promise<FreshDatabase> {
  return newDatabase(await shared('postgres'));
}

export async function newDatabase(server: string, template?: string): Promise<FreshDatabase> {
  const name = `holdfast_${randomUUID().replaceAll('-', '')}`;
  await run(server, `CREATE DATABASE ${name}${template === undefined ? '' : ` TEMPLATE ${template}`}`);
  const fresh = new URL(server);
  fresh.pathname = `/${name}`;
  return { url: fresh.href, drop: () => run(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

async function run(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
