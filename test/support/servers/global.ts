// For vitest's globalSetup: the servers that all test files of a run share. Each is started when the first test asks for it
// (shared.ts), so that a run without such tests starts none, and ended with the run. REDIS_URL and DATABASE_URL are respected.
import { createServer, type Socket } from 'node:net';
import { startPostgres } from './postgres.js';
import { folderOf } from './programs.js';
import { startRedis } from './redis.js';
import { startRedisCluster } from './redis-cluster.js';
import { OFFICE, type Reply, type SharedServer } from './shared.js';

interface Open {
  url: string;
  close(): Promise<void>;
}

const START: Record<SharedServer, () => Promise<Open>> = {
  redis: () => given('REDIS_URL') ?? startRedis(),
  'redis-cluster': () => startRedisCluster(3),
  postgres: () => given('DATABASE_URL') ?? startPostgres(),
};

export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  // vitest calls it once for each project; the first serves all.
  if (process.env[OFFICE] !== undefined) return undefined;
  await installMissing();
  const started = new Map<SharedServer, Promise<Open>>();
  const serve = async (name: SharedServer): Promise<Reply> => {
    const start = started.get(name) ?? START[name]();
    started.set(name, start);
    return start.then(
      ({ url }) => ({ url }),
      (error: Error) => ({ error: error.message }),
    );
  };
  const office = createServer((socket: Socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (name) => void serve(name.toString() as SharedServer).then((reply) => socket.end(JSON.stringify(reply))));
  });
  await new Promise<void>((resolve) => office.listen(0, '127.0.0.1', resolve));
  process.env[OFFICE] = String((office.address() as { port: number }).port);
  return async () => {
    delete process.env[OFFICE];
    office.close();
    const ends = [...started.values()].map(async (start) => (await start).close());
    await Promise.allSettled(ends);
  };
}

function given(variable: string): Promise<Open> | undefined {
  const url = process.env[variable];
  return url === undefined || url === '' ? undefined : Promise.resolve({ url, close: () => Promise.resolve() });
}

// Now, because it takes longer than a test has time. A failure is told to the tests that need the program, not to the others.
async function installMissing(): Promise<void> {
  for (const program of ['redis', 'postgres', 'pgbouncer', 'faketime'] as const) await folderOf(program).catch(() => undefined);
}
