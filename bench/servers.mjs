// The servers that are measured: those of REDIS_URL and DATABASE_URL, else ones of our own, started as the tests start theirs and ended
// with the benchmark. Ours are as durable as usual: PostgreSQL syncs every commit, Redis its log every second.
import { compileSupport } from '../scripts/compile-support.mjs';
import { cpuOfFamily } from './processor-time.mjs';

const SERVERS = {
  redis: {
    variable: 'REDIS_URL',
    start: ({ startRedis }) => startRedis({ settings: { appendonly: 'yes', appendfsync: 'everysec' } }),
  },
  postgres: { variable: 'DATABASE_URL', start: ({ startPostgres }) => startPostgres() },
};
export const SERVER_STORES = Object.keys(SERVERS);

const started = new Map();
let load;

/** The URL of a server, which is started if it does not run yet. */
export async function serverUrl(engine) {
  const { variable, start } = SERVERS[engine];
  const given = process.env[variable];
  if (given) return given;
  if (!started.has(engine)) started.set(engine, await start(await support(engine)));
  return started.get(engine).url;
}

/** Milliseconds of processor time that a server of ours has used so far, all its processes together; undefined where that cannot be read. */
export function serverCpuMs(engine) {
  const server = started.get(engine);
  return server === undefined ? undefined : cpuOfFamily(server.pid);
}

export async function closeServers() {
  await Promise.allSettled([...started.values()].map((server) => server.close()));
  started.clear();
}

function support(engine) {
  load ??= compileSupport(SERVER_STORES.map((name) => `servers/${name}.ts`));
  return load(`servers/${engine}.ts`);
}
