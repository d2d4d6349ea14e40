// A Next.js application, built as `standalone`, runs jobs with the lock thread. Installing and building Next takes a minute or two, so this
// runs on demand only: HOLDFAST_TEST_NEXT=1 npm test -- test/package/next.test.ts
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { paced } from '../support/wait/pace.js';
import { freePort } from '../support/servers/free-port.js';
import { shared } from '../support/servers/shared.js';
import { newApp, npm, pack } from './install.js';
import { JOB_OF_A_BUNDLE, JOB_OF_A_BUNDLE_RAN } from './programs.js';
import { until } from '../support/wait/until.js';

const CONFIG = `export default {
  output: 'standalone',
  serverExternalPackages: ['holdfast'],
  turbopack: { root: import.meta.dirname },
  outputFileTracingRoot: import.meta.dirname,
};
`;
const LAYOUT = 'export default ({ children }) => <html><body>{children}</body></html>;\n';
const ROUTE = `import { Queue, Worker } from 'holdfast';
${JOB_OF_A_BUNDLE}
export const dynamic = 'force-dynamic';
export const GET = async () => Response.json(await runJob('next', 'thread'));
`;

test.runIf(process.env['HOLDFAST_TEST_NEXT'] === '1')(
  'Next.js standalone runs jobs with the lock thread',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-next-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const app = newApp(join(folder, 'app'));
    npm(app, [
      'install',
      '--prefer-offline',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      pack().file,
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
      env: { ...env, CONNECTION: await shared('redis'), PORT: String(port), HOSTNAME: '127.0.0.1' },
      stdio: 'inherit',
    });
    onTestFinished(async () => {
      const ended = new Promise((resolve) => server.once('exit', resolve));
      server.kill('SIGKILL');
      await ended;
    });
    const answer = await until('the server replies', () => replyOf(`http://127.0.0.1:${port}/job`), 30_000);
    expect(answer).toEqual(JOB_OF_A_BUNDLE_RAN);
  },
  paced(400_000),
);

/** Undefined while no server listens. */
async function replyOf(url: string): Promise<unknown> {
  const reply = await fetch(url).catch(() => undefined);
  return reply?.json();
}
