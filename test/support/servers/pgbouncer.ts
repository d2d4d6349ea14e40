// PgBouncer for tests, before a PostgreSQL server, in the mode that leaves a client the least: a connection for the length of a
// transaction. With few connections to the server, so that the next transaction runs on another one.
import { chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { userOf } from './postgres.js';
import { folderOf } from './programs.js';
import { TestServer } from './server.js';

/** `url` of the server behind it. The URL of the pooler names the same database. */
export async function startPgbouncer(url: string, { connections = 4 } = {}): Promise<TestServer> {
  const command = join(await folderOf('pgbouncer'), 'pgbouncer');
  const target = new URL(url);
  const user = userOf();
  const write = (file: string, lines: string[]): string => {
    writeFileSync(file, `${lines.join('\n')}\n`);
    if (user !== undefined) chownSync(file, user.uid, user.gid);
    return file;
  };
  const at = (port: number, database = target.pathname): string => {
    const changed = new URL(url);
    changed.host = `127.0.0.1:${port}`;
    changed.pathname = database;
    return changed.href;
  };
  return TestServer.start({
    name: 'pgbouncer',
    command,
    // It takes its port from a file alone.
    args: ({ folder, port }) => [
      write(join(folder, 'pgbouncer.ini'), [
        '[databases]',
        `* = host=${target.hostname} port=${target.port}`,
        '[pgbouncer]',
        ...['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir ='],
        ...['auth_type = scram-sha-256', `auth_file = ${join(folder, 'users')}`, `admin_users = ${target.username}`],
        ...['pool_mode = transaction', `default_pool_size = ${connections}`, 'max_client_conn = 500'],
      ]),
    ],
    url: at,
    isReady: ({ folder, port }) => answersFrom(join(folder, 'users'), at(port, '/pgbouncer')),
    signals: { restart: 'SIGKILL', close: 'SIGKILL' },
    prepare: (folder) => {
      write(join(folder, 'users'), [`"${target.username}" "${target.password}"`]);
      return Promise.resolve();
    },
    user,
  });
}

async function answersFrom(users: string, console: string): Promise<boolean> {
  const client = new Client({ connectionString: console, connectionTimeoutMillis: 1_000, query_timeout: 1_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ key: string; value: string }>('SHOW CONFIG');
    return rows.some(({ key, value }) => key === 'auth_file' && value === users);
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
