// Programs that have the package inside of their bundle, run in a folder of their own: no node_modules, no files beside the bundle but
// those that the bundler made.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { shared } from '../support/servers/shared.js';
import { packAndInstall, root } from './install.js';
import { JOB_OF_A_BUNDLE, JOB_OF_A_BUNDLE_RAN } from './programs.js';
import { tool } from './tools.js';
import { paced } from '../support/wait/pace.js';

const LIMIT_MS = paced(240_000);

/** Bundling takes some seconds, and ten times as long on a busy machine. */
vi.setConfig({ testTimeout: 120_000 });

const run = promisify(execFile);
const PROGRAM = `import { Queue, Worker } from 'holdfast';
${JOB_OF_A_BUNDLE}
void runJob(...process.argv.slice(2)).then((ran) => console.log(JSON.stringify(ran)));
`;
/** They have native code, or are not installed at all: the program does not use them. */
const NATIVE = ['better-sqlite3', '@photostructure/sqlite'];

/** The SQLite driver that needs a file of the package; Node 22 and newer would take their own. */
const PREBUILT = '@photostructure/sqlite';

let folder: string;
let app: string;
let redis: string;

beforeAll(async () => {
  redis = await shared('redis');
  folder = mkdtempSync(join(tmpdir(), 'holdfast-bundles-'));
  packAndInstall(folder);
  app = join(folder, 'app');
  symlinkSync(join(root, 'node_modules', 'ioredis'), join(app, 'node_modules', 'ioredis'));
  for (const name of ['program.mjs', 'program.cjs']) {
    const required = PROGRAM.replace(/import (\{.*?\}) from ('.*?')/g, 'const $1 = require($2)');
    writeFileSync(join(app, name), name.endsWith('.mjs') ? PROGRAM : required);
  }
  for (const name of ['esbuild', 'webpack'] as const) tool(name);
}, LIMIT_MS);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A folder that sees no package at all. */
function emptyFolder(name: string): string {
  const out = join(folder, name);
  mkdirSync(out);
  return out;
}

async function runBundle(out: string, file: string, renewer: 'thread' | 'loop', connection = redis): Promise<unknown> {
  const { stdout } = await run(process.execPath, [join(out, file), `${renewer}-${out.slice(-20)}`.replace(/\W/g, '-'), renewer], {
    cwd: out,
    env: { ...process.env, CONNECTION: connection, HOLDFAST_SQLITE_DRIVER: PREBUILT },
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });
  return JSON.parse(stdout);
}

describe('esbuild', () => {
  async function bundle(out: string, format: 'esm' | 'cjs', entries: string[], more?: string[]): Promise<void> {
    const extension = format === 'esm' ? 'mjs' : 'cjs';
    writeFileSync(join(out, 'package.json'), JSON.stringify({ type: format === 'esm' ? 'module' : 'commonjs' }));
    // ioredis is CommonJS, which needs `require` inside an ESM bundle.
    const banner = `--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`;
    await run(
      process.execPath,
      [
        join(tool('esbuild'), 'esbuild', 'bin', 'esbuild'),
        `program=program.${extension}`,
        ...entries,
        '--bundle',
        '--platform=node',
        `--format=${format}`,
        `--outdir=${out}`,
        '--log-level=error',
        ...NATIVE.map((name) => `--external:${name}`),
        ...(more ?? (format === 'esm' ? [banner] : [])),
      ],
      { cwd: app },
    );
  }

  test.each(['esm', 'cjs'] as const)(
    'as %s, with the lock thread as a second entry, runs jobs with the thread',
    async (format) => {
      const out = emptyFolder(`esbuild-${format}`);
      await bundle(out, format, ['thread-entry=holdfast/lock-thread']);
      expect(await runBundle(out, 'program.js', 'thread')).toEqual(JOB_OF_A_BUNDLE_RAN);
    },
  );

  test('as esm, with its drivers outside, runs jobs with the thread and needs no require', async () => {
    const out = emptyFolder('esbuild-outside');
    await bundle(
      out,
      'esm',
      ['thread-entry=holdfast/lock-thread'],
      ['--external:ioredis', '--external:pg', '--out-extension:.js=.mjs'],
    );
    mkdirSync(join(out, 'node_modules'));
    symlinkSync(join(root, 'node_modules', 'ioredis'), join(out, 'node_modules', 'ioredis'));
    expect(await runBundle(out, 'program.mjs', 'thread')).toEqual(JOB_OF_A_BUNDLE_RAN);
    const sqlite = `sqlite:${join(out, 'jobs.db')}`;
    await expect(runBundle(out, 'program.mjs', 'loop', sqlite)).rejects.toMatchObject({
      stderr: expect.stringMatching(
        /leave holdfast out of it \(external\).*copy node_modules\/holdfast\/prebuilt beside the bundle/,
      ),
    });
    cpSync(join(app, 'node_modules', 'holdfast', 'prebuilt'), join(out, 'prebuilt'), { recursive: true });
    expect(await runBundle(out, 'program.mjs', 'thread', sqlite)).toEqual(JOB_OF_A_BUNDLE_RAN);
  });

  test.each(['esm', 'cjs'] as const)('as %s, finds what SQLite needs in the package that the program sees', async (format) => {
    const out = emptyFolder(`esbuild-sqlite-${format}`);
    await bundle(out, format, ['thread-entry=holdfast/lock-thread'], ['--external:ioredis', '--external:pg']);
    mkdirSync(join(out, 'node_modules'));
    symlinkSync(join(app, 'node_modules', 'holdfast'), join(out, 'node_modules', 'holdfast'));
    expect(await runBundle(out, 'program.js', 'thread', `sqlite:${join(out, 'jobs.db')}`)).toEqual(JOB_OF_A_BUNDLE_RAN);
  });

  test.each(['esm', 'cjs'] as const)('as %s, alone, runs jobs on the loop and says what to do', async (format) => {
    const out = emptyFolder(`esbuild-alone-${format}`);
    await bundle(out, format, []);
    expect(await runBundle(out, 'program.js', 'loop')).toEqual({
      value: 'hello ada',
      lockThread: 'loop',
      errors: [expect.stringMatching(/entry file was not found.*leave holdfast out of the bundle \(external\).*lockThreadEntry/)],
    });
  });
});

test('webpack makes a chunk of the lock thread by itself', async () => {
  const out = emptyFolder('webpack');
  const config = {
    mode: 'production',
    target: 'node20',
    context: app,
    entry: './program.mjs',
    output: { path: out, filename: 'program.js' },
    externals: Object.fromEntries(NATIVE.map((name) => [name, `commonjs ${name}`])),
    optimization: { minimize: false },
  };
  const webpack = JSON.stringify(join(tool('webpack'), 'webpack'));
  const program = `require(${webpack})(${JSON.stringify(config)}, (error, stats) => {
    console.log(JSON.stringify(error ? [String(error)] : stats.toJson().errors.map(({ message }) => message)));
  });`;
  const { stdout } = await run(process.execPath, ['-e', program], { cwd: app });
  expect(JSON.parse(stdout)).toEqual([]);
  expect(await runBundle(out, 'program.js', 'thread')).toEqual(JOB_OF_A_BUNDLE_RAN);
});
