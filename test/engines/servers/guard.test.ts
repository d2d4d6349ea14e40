// Servers end with those who started them, even when these are killed: a run of vitest with a shared and a private server, killed.
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../../support/wait/until.js';
import { hasEnded, signal } from '../../support/servers/processes.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));

const RUN = (told: string): string => `
  import { renameSync, writeFileSync } from 'node:fs';
  import { test } from 'vitest';
  import { childrenOf, hasEnded } from '${root}test/support/servers/processes.ts';
  import { startPostgres } from '${root}test/support/servers/postgres.ts';
  import { askRedis } from '${root}test/support/servers/redis.ts';
  import { shared } from '${root}test/support/servers/shared.ts';
  test('starts servers and waits', async () => {
    const url = await shared('redis');
    const info = await askRedis(Number(new URL(url).port), 'INFO server', 'CONFIG GET dir');
    const own = await startPostgres();
    await own.stop();
    const servers = [Number(/process_id:(\\d+)/.exec(info)[1]), own.pid, ...childrenOf(own.pid).filter((pid) => !hasEnded(pid))];
    const folders = [/\\r\\n(\\/.*holdfast-redis-.*)\\r\\n/.exec(info)[1], own.folder];
    writeFileSync('${told}.new', JSON.stringify({ worker: process.pid, servers, folders }));
    renameSync('${told}.new', '${told}');
    await new Promise(() => {});
  });
`;

interface Told {
  worker: number;
  servers: number[];
  folders: string[];
}

test('a killed test process leaves no server and no folder, even of one that was stopped', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-guard-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  // All that the killed run leaves behind lies in here. PostgreSQL, as another user, must be able to pass.
  chmodSync(folder, 0o755);
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const config = { test: { pool: 'forks', globalSetup: [`${root}test/support/servers/global.ts`], testTimeout: 60_000 } };
  writeFileSync(join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify(config)};`);
  const told = join(folder, 'told.json');
  writeFileSync(join(folder, 'hangs.test.mjs'), RUN(told));
  const { REDIS_URL: _, HOLDFAST_TEST_SERVERS_PORT: __, ...env } = process.env;
  const run = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--configLoader', 'runner'], {
    cwd: folder,
    env: { ...env, TMPDIR: folder },
    stdio: 'ignore',
  });
  const ended = new Promise((resolve) => run.once('close', resolve));
  onTestFinished(() => void run.kill('SIGKILL'));

  await until('the servers run', () => existsSync(told), 25_000);
  const { worker, servers, folders } = JSON.parse(readFileSync(told, 'utf8')) as Told;
  // It would wait for ever, even without the run that it belongs to.
  onTestFinished(() => signal(worker, 'SIGKILL'));
  expect(servers.some(hasEnded)).toBe(false);
  expect(servers.length).toBeGreaterThan(4);
  expect(folders.every(existsSync)).toBe(true);
  run.kill('SIGKILL');
  signal(worker, 'SIGKILL');
  await ended;

  await until('all servers have ended', () => servers.every(hasEnded));
  await until('their folders are gone', () => !folders.some(existsSync));
});
