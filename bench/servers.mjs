// The servers that are measured: those of REDIS_URL and DATABASE_URL, else ones of our own, started as the tests start theirs and ended
// with the benchmark. Ours are as durable as usual: PostgreSQL syncs every commit, Redis its log every second.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { tsc } from '../scripts/build.mjs';
import { cpuOfFamily } from './processor-time.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const SOURCES = join(root, 'test', 'support', 'servers');
const SERVERS = {
  redis: {
    variable: 'REDIS_URL',
    start: ({ startRedis }) => startRedis({ settings: { appendonly: 'yes', appendfsync: 'everysec' } }),
  },
  postgres: { variable: 'DATABASE_URL', start: ({ startPostgres }) => startPostgres() },
};
export const SERVER_STORES = Object.keys(SERVERS);

const started = new Map();
let compiled;

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

/** The tests' support is TypeScript, which Node 20 does not load. */
async function support(engine) {
  compiled ??= compile();
  return import(pathToFileURL(join(compiled, `${engine}.js`)).href);
}

function compile() {
  // In node_modules, where its own imports are found and nobody lints it.
  const folder = join(root, 'node_modules', '.cache', `holdfast-bench-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const compilerOptions = { noEmit: false, noCheck: true, declaration: false, rootDir: SOURCES, outDir: join(folder, 'out') };
  const files = SERVER_STORES.map((engine) => join(SOURCES, `${engine}.ts`));
  const config = join(folder, 'tsconfig.json');
  writeFileSync(config, JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, files, include: [] }));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  const { status, stdout, stderr } = spawnSync(process.execPath, [tsc, '-p', config], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`test/support/servers does not compile.\n${stdout}${stderr}`);
  cpSync(join(SOURCES, 'guard.sh'), join(folder, 'out', 'guard.sh'));
  return join(folder, 'out');
}
