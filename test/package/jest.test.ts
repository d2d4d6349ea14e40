// The installed package in tests that run on Jest as most projects have it: CommonJS, TypeScript through ts-jest, no flags.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { shared } from '../support/servers/shared.js';
import { packAndInstall, root } from './install.js';
import { JEST_TEST, OWN_STORE } from './jest-program.js';
import { nodeOf, tool } from './tools.js';
import { paced } from '../support/wait/pace.js';

const JESTS = ['jest29', 'jest30'] as const;
const NODES = [20, 22, 24];
/** In the gate, one of them. */
const PAIRS = oneInThisRun(JESTS.flatMap((jest) => NODES.map((node) => [jest, node] as const)));

let folder: string;
let app: string;
let redis: string;

beforeAll(async () => {
  redis = await shared('redis');
  folder = mkdtempSync(join(tmpdir(), 'holdfast-jest-'));
  packAndInstall(folder);
  app = join(folder, 'app');
  for (const client of ['ioredis', 'pg']) symlinkSync(join(root, 'node_modules', client), join(app, 'node_modules', client));
  writeFileSync(join(app, 'jobs.test.ts'), JEST_TEST);
  writeFileSync(join(app, 'own-store.cjs'), OWN_STORE);
  // Fetched here, because that may take a minute the first time.
  for (const [jest, node] of PAIRS) void [tool(jest), nodeOf(node)];
}, 300_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(PAIRS)(
  '%s with ts-jest on Node %i runs jobs with the lock thread',
  (jest, node) => {
    const modules = tool(jest);
    const stores = [redis, `sqlite:${join(app, `${jest}-${node}.db`)}`];
    const compiler = {
      module: 'commonjs',
      moduleResolution: 'node10',
      target: 'es2022',
      esModuleInterop: true,
      isolatedModules: true,
    };
    const transform = { '\\.ts$': [join(modules, 'ts-jest'), { diagnostics: false, tsconfig: compiler }] };
    const config = JSON.stringify({ rootDir: app, testEnvironment: 'node', transform, cacheDirectory: join(folder, 'cache') });
    const { status, stderr, stdout } = spawnSync(
      nodeOf(node),
      [join(modules, 'jest', 'bin', 'jest.js'), '--config', config, '-i'],
      {
        cwd: app,
        encoding: 'utf8',
        env: { ...process.env, STORES: stores.join(' '), NODE_OPTIONS: '' },
        timeout: 120_000,
        killSignal: 'SIGKILL',
      },
    );
    expect(status, stdout + stderr).toBe(0);
    expect(stderr).toMatch(new RegExp(`Tests: +${stores.length + 3} passed, ${stores.length + 3} total`));
    // It ended by itself.
    expect(stderr).not.toMatch(/did not exit|open handle/i);
  },
  paced(150_000),
);
