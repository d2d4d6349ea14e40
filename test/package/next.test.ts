// A Next.js application, built as `standalone`, runs jobs with the lock thread. Installing and building Next takes a minute or two, so this
// runs on demand only: HOLDFAST_TEST_NEXT=1 npm test -- test/package/next.test.ts
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../support/servers/free-port.js';
import { shared } from '../support/servers/shared.js';
import { npm, packAndInstall } from './install.js';

const CONFIG = `export default {
  output: 'standalone',
  serverExternalPackages: ['holdfast'],
  turbopack: { root: import.meta.dirname },
  outputFileTracingRoot: import.meta.dirname,
};
`;
const LAYOUT = 'export default ({ children }) => <html><body>{children}</body></html>;\n';
const ROUTE = `import { Queue, Worker } from 'holdfast';

export const dynamic = 'force-dynamic';
export async function GET() {
  const connection = process.env.REDIS;
  const errors = [];
  const queue = new Queue('next', { connection });
  const worker = new Worker('next', async (job) => 'hello ' + job.data.to, { connection });
  worker.on('error', (error) => errors.push(error.message));
  const completed = new Promise((resolve) => worker.on('completed', (_job, value) => resolve(value)));
  while (worker.health().lockThread !== 'thread' && errors.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await queue.add('welcome', { to: 'ada' });
  const value = await completed;
  const { lockThread } = worker.health();
  await worker.close();
  await queue.obliterate({ force: true });
  await queue.close();
  return Response.json({ value, lockThread, errors });
}
`;

test.runIf(process.env['HOLDFAST_TEST_NEXT'] === '1')(
  'Next.js standalone runs jobs with the lock thread',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-next-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    packAndInstall(folder);
    const app = join(folder, 'app');
    npm(app, [
      'install',
      '--prefer-offline',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      'next@16',
      'react@19',
      'react-dom@19',
      'ioredis@5',
    ]);
    mkdirSync(join(app, 'app', 'job'), { recursive: true });
    writeFileSync(join(app, 'next.config.mjs'), CONFIG);
    writeFileSync(join(app, 'app', 'layout.jsx'), LAYOUT);
    writeFileSync(join(app, 'app', 'job', 'route.js'), ROUTE);
    const env = { ...process.env, NODE_ENV: 'production' as const, NEXT_TELEMETRY_DISABLED: '1' };
    const built = spawnSync(process.execPath, [join(app, 'node_modules', 'next', 'dist', 'bin', 'next'), 'build'], {
      cwd: app,
      env,
      encoding: 'utf8',
    });
    expect(built.status, built.stdout + built.stderr).toBe(0);
    // Elsewhere, so that it sees nothing but what Next took along.
    const out = join(folder, 'out');
    cpSync(join(app, '.next', 'standalone'), out, { recursive: true, verbatimSymlinks: true });
    rmSync(app, { recursive: true });
    const port = await freePort();
    const server = spawn(process.execPath, [join(out, 'server.js')], {
      env: { ...env, REDIS: await shared('redis'), PORT: String(port), HOSTNAME: '127.0.0.1' },
      stdio: 'inherit',
    });
    onTestFinished(async () => {
      const ended = new Promise((resolve) => server.once('exit', resolve));
      server.kill('SIGKILL');
      await ended;
    });
    const answer = await vi.waitFor(async () => (await fetch(`http://127.0.0.1:${port}/job`)).json() as Promise<unknown>, 30_000);
    expect(answer).toEqual({ value: 'hello ada', lockThread: 'thread', errors: [] });
  },
  400_000,
);
