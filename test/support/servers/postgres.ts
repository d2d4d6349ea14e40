// PostgreSQL servers for tests. They are as durable as in production: only making the empty database skips fsync.
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, chownSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { isTestRun, madeOnce } from '../run/run-folder.js';
import { folderOf } from './programs.js';
import { TestServer } from './server.js';

export interface PostgresOptions {
  /** As in postgresql.conf: `{ max_connections: '20' }`. */
  settings?: Record<string, string>;
  /** A replica that is cut off from its primary: it can be read and refuses to write. */
  standby?: boolean;
}

const MEMORY = '/dev/shm';
const ROOM_BYTES = 4 * 1024 ** 3;

const PASSWORD = 'holdfast';
const TOO_MANY_CONNECTIONS = '53300';
/** After a restart a hundred clients come back at once, and each has its password hashed: on a busy machine a second is too short. */
const ANSWER_MS = 5_000;

export async function startPostgres(options: PostgresOptions = {}): Promise<TestServer> {
  const programs = await folderOf('postgres');
  const user = userOf();
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    // Not in /dev/shm, where the segments of a killed server would stay, and which containers keep small.
    dynamic_shared_memory_type: 'mmap',
    ...options.settings,
  };
  return TestServer.start({
    name: 'postgres',
    command: join(programs, 'postgres'),
    args: ({ folder, port }) => [
      ...['-D', join(folder, 'data'), '-p', `${port}`],
      ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
    ],
    url: (port) => `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`,
    isReady: ({ folder, port }) => answersFrom(join(folder, 'data'), port),
    // Fast shutdown, and immediate shutdown: without a checkpoint, but the children and the shared memory are cleared away.
    signals: { restart: 'SIGINT', close: 'SIGQUIT' },
    prepare: async (folder) => {
      // initdb takes most of the time that a start takes, and makes the same each time.
      const data = isTestRun() ? madeOnce('postgres', (fresh) => initdb(programs, fresh)) : undefined;
      if (data === undefined) initdb(programs, folder);
      else await promisify(execFile)('cp', ['-a', join(data, 'data'), folder]);
      if (options.standby === true) writeFileSync(join(folder, 'data', 'standby.signal'), '');
    },
    user,
    // Files cost the servers of tests more than queries do. What is in memory stays when a server is killed, as on a disk.
    parent: isTestRun() && hasRoom() ? MEMORY : undefined,
  });
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > ROOM_BYTES;
  } catch {
    return false;
  }
}

/** Makes `folder`/data. */
function initdb(programs: string, folder: string): void {
  const user = userOf();
  const password = join(folder, 'password');
  writeFileSync(password, PASSWORD);
  chmodSync(folder, 0o755);
  if (user !== undefined) for (const path of [folder, password]) chownSync(path, user.uid, user.gid);
  const how = ['--no-sync', '--no-locale', '--encoding=UTF8', '--auth=scram-sha-256', `--pwfile=${password}`, '-U', 'postgres'];
  execFileSync(join(programs, 'initdb'), ['-D', join(folder, 'data'), ...how], { cwd: folder, stdio: 'pipe', ...user });
}

async function answersFrom(data: string, port: number): Promise<boolean> {
  const client = new Client({
    ...{ host: '127.0.0.1', port, user: 'postgres', password: PASSWORD, database: 'postgres' },
    ...{ connectionTimeoutMillis: ANSWER_MS, query_timeout: ANSWER_MS },
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory');
    return rows[0]?.data_directory === data;
  } catch (error) {
    // After a restart the clients may be back, in their numbers, before us.
    return (error as { code?: unknown }).code === TOO_MANY_CONNECTIONS;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** PostgreSQL refuses to run as root, and so does PgBouncer. */
export function userOf(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const number = (name: string, which: '-u' | '-g'): number =>
    Number(execFileSync('id', [which, name], { stdio: ['ignore', 'pipe', 'ignore'] }).toString());
  for (const name of ['postgres', 'nobody']) {
    try {
      return { uid: number(name, '-u'), gid: number(name, '-g') };
    } catch {}
  }
  throw new Error(
    'PostgreSQL refuses to run as root, and there is neither a user "postgres" nor "nobody": run the tests as another user.',
  );
}
