// Other package managers install the tarball without a compiler, without an install script and without a word against it, and the first program
// of the README runs from there. On Node this is the SQLite that comes with the package, or Node's own.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runtime } from '../runtimes/runtimes.js';
import { promisedOutput } from '../support/processes/program.js';
import { newApp, pack, root } from './install.js';
import { installed, nodeOf } from './tools.js';

const LIMIT_MS = 120_000;
const run = promisify(execFile);
const [, program = ''] = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];

let folder: string;
let tarball: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-installers-'));
  tarball = pack().file;
}, LIMIT_MS);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Of ours, nothing: neither the cache of this machine's user nor a compiler. */
const env = (): NodeJS.ProcessEnv => ({
  ...process.env,
  CC: 'false',
  CXX: 'false',
  XDG_DATA_HOME: join(folder, 'data'),
  XDG_CACHE_HOME: join(folder, 'cache'),
});

describe.each([
  ['npm on Node 20', () => ['npm', 'install', '--no-audit', '--no-fund'], () => [nodeOf(20)]],
  [
    'pnpm',
    () => [process.execPath, join(installed('pnpm', ['pnpm@12.18.0']), 'pnpm', 'bin', 'pnpm.mjs'), 'add'],
    () => [nodeOf(24)],
  ],
  ['Bun', () => [...runtime('Bun').command, 'add'], () => runtime('Bun').command],
] as const)('installed by %s', (name, installer, runner) => {
  test(
    'the program of the README runs',
    async () => {
      const app = newApp(join(folder, name));
      const [command = '', ...args] = installer();
      await run(command, [...args, tarball], { cwd: app, env: env(), timeout: LIMIT_MS, killSignal: 'SIGKILL' });
      writeFileSync(join(app, 'program.mjs'), program);
      const [runtimeCommand = '', ...runtimeArgs] = runner();
      const { HOLDFAST_URL: _, ...clean } = env();
      const options = { cwd: app, env: clean, timeout: LIMIT_MS, killSignal: 'SIGKILL' as const };
      const { stdout, stderr } = await run(runtimeCommand, [...runtimeArgs, 'program.mjs'], options);
      const promised = promisedOutput(program);
      expect(promised).not.toEqual([]);
      expect(stdout.trim().split('\n')).toEqual(promised);
      expect(stderr).not.toContain('Experimental');
    },
    LIMIT_MS,
  );
});
