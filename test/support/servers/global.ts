// For vitest's globalSetup: the servers that all test files of a run share. Each is started when the first test asks for it
// (shared.ts), so that a run without such tests starts none, and ended with the run. REDIS_URL and DATABASE_URL are respected.
import { createServer, type Socket } from 'node:net';
import { startPostgres } from './postgres.js';
import { folderOf } from './programs.js';
import { startRedis } from './redis.js';
import { startRedisCluster } from './redis-cluster.js';
import { newDatabase, OFFICE, type Reply, type SharedServer } from './shared.js';

interface Open {
  url: string;
  close(): Promise<void>;
}

/** `urlOf` another one that it needs. */
const START: Record<SharedServer, (urlOf: (name: SharedServer) => Promise<string>) => Promise<Open>> = {
  redis: () => given('REDIS_URL') ?? startRedis(),
  'redis-cluster': () => startRedisCluster(3),
  postgres: () => given('DATABASE_URL') ?? startPostgres(),
  'postgres-template': async (urlOf) => makeTemplate(await urlOf('postgres')),
};

export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  // vitest calls it once for each project; the first serves all.
  if (process.env[OFFICE] !== undefined) return undefined;
  await installMissing();
  const started = new Map<SharedServer, Promise<Open>>();
  const start = (name: SharedServer): Promise<Open> => {
    const starting = started.get(name) ?? START[name](async (needed) => (await start(needed)).url);
    started.set(name, starting);
    return starting;
  };
  const serve = (name: SharedServer): Promise<Reply> =>
    start(name).then(
      ({ url }) => ({ url }),
      (error: Error) => ({ error: error.message }),
    );
  const office = createServer((socket: Socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (name) => void serve(name.toString() as SharedServer).then((reply) => socket.end(JSON.stringify(reply))));
  });
  await new Promise<void>((resolve) => office.listen(0, '127.0.0.1', resolve));
  process.env[OFFICE] = String((office.address() as { port: number }).port);
  return async () => {
    delete process.env[OFFICE];
    office.close();
    // The last that was started first: it may need one that was started before.
    for (const starting of [...started.values()].reverse()) await starting.then((open) => open.close()).catch(() => undefined);
  };
}

/** A database with the schema of the store, from which others are copied. */
async function makeTemplate(server: string): Promise<Open> {
  const { url, drop } = await newDatabase(server);
  const { migratePostgres } = await import('../../../src/store/open.js');
  await migratePostgres(url);
  return { url, close: drop };
}

function given(variable: string): Promise<Open> | undefined {
  const url = process.env[variable];
  return url === undefined || url === '' ? undefined : Promise.resolve({ url, close: () => Promise.resolve() });
}

// Now, because it takes longer than a test has time. A failure is told to the tests that need the program, not to the others.
async function installMissing(): Promise<void> {
  for (const program of ['redis', 'postgres', 'pgbouncer', 'faketime'] as const) await folderOf(program).catch(() => undefined);
}
