// The package as a user gets it: packed, installed into an empty application, and used from ESM, CommonJS and TypeScript.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tsc } from '../../scripts/build.mjs';
import { brokenLinks } from '../docs/links.js';
import { type ExportTarget, manifestOf, packAndInstall, root } from './install.js';
import { BOTH_BUILDS, EXPORTS_ESM, EXPORTS_CJS, JOB_CJS, JOB_ESM, SANDBOX_CJS, SANDBOX_ESM, TYPES } from './programs.js';
import { paced } from '../support/wait/pace.js';

const LIMIT_MS = paced(120_000);

const CORE = [
  'Queue',
  'Worker',
  'Job',
  'QueueEvents',
  'LockManager',
  'HoldfastError',
  'ERROR_CODES',
  'UnrecoverableError',
  'DelayedError',
  'WaitingError',
  'RateLimitError',
];
const manifest = manifestOf(root);
const specifiers = Object.keys(manifest.exports).map((path) => manifest.name + path.slice(1));
/** Runs as a thread and has nothing to import; on the main thread it may say so. */
const ENTRY = 'holdfast/lock-thread';
/** The same for the threads and processes of sandboxes. */
const CHILD_ENTRY = 'holdfast/sandbox-child';

let folder: string;
let app: string;
let files: string[];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-package-'));
  files = packAndInstall(folder);
  app = join(folder, 'app');
}, LIMIT_MS);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function filesOf(target: ExportTarget): string[] {
  return typeof target === 'string' ? [target] : Object.values(target).flatMap(filesOf);
}

function run(name: string, program: string, ...args: string[]): unknown {
  return runWith([], name, program, ...args);
}

function runWith(flags: string[], name: string, program: string, ...args: string[]): unknown {
  mkdirSync(join(app, 'run'), { recursive: true });
  writeFileSync(join(app, name), program);
  const stdout = execFileSync(process.execPath, [...flags, join(app, name), ...args], {
    cwd: mkdtempSync(join(app, 'run', 'cwd-')),
    encoding: 'utf8',
    timeout: 20_000,
    killSignal: 'SIGKILL',
  });
  return JSON.parse(stdout);
}

const exportsFrom = (file: string, program: string): Record<string, string[] | string> =>
  run(file, program, JSON.stringify(specifiers)) as Record<string, string[] | string>;

describe('the tarball', () => {
  test('holds what package.json exports', () => {
    const targets = filesOf(manifest.exports);
    expect(targets.filter((target) => !files.includes(target.replace('./', '')))).toEqual([]);
  });

  test('holds nothing but the build, the SQLite of Node 20, the documents for users and the examples', () => {
    const expected =
      /^(dist\/[^.].*|prebuilt\/.*|docs\/[^/]*\.(md|svg)|examples\/([^/]*\.(ts|cjs)|deploy\/[^/]*)|(README|CHANGELOG|SECURITY)\.md|LICENSE|package\.json)$/;
    expect(files.filter((file) => !expected.test(file))).toEqual([]);
    expect(files).toEqual(expect.arrayContaining(['README.md', 'LICENSE', 'package.json']));
  });

  test('has documents whose links and anchors all lead to something that it holds too', () => {
    const documents = files.filter((file) => file.endsWith('.md') && !file.startsWith('dist/'));
    expect(documents).toEqual(expect.arrayContaining(['README.md', 'CHANGELOG.md', 'SECURITY.md', 'docs/guide.md']));
    const installed = join(app, 'node_modules', manifest.name);
    const broken = documents.flatMap((document) => brokenLinks(installed, document).map((link) => `${document}: ${link}`));
    expect(broken).toEqual([]);
  });

  test('brings the SQLite of Node 20 for each platform, with its licence, and nothing to compile or to fetch', () => {
    const binary = (platform: string, libc = 'glibc'): string => `prebuilt/${platform}/@photostructure+sqlite.${libc}.node`;
    const platforms = ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64', 'win32-arm64', 'win32-x64'];
    const musl = [binary('linux-arm64', 'musl'), binary('linux-x64', 'musl')];
    expect(files.filter((file) => file.startsWith('prebuilt/')).sort()).toEqual(
      [...platforms.map((platform) => binary(platform)), ...musl, 'prebuilt/LICENSE', 'prebuilt/VERSION'].sort(),
    );
    expect(manifest.dependencies ?? manifest.optionalDependencies).toBeUndefined();
    expect(Object.keys(manifest.scripts ?? {}).filter((name) => /install|prepare/.test(name))).toEqual([]);
  });
});

describe('imported', () => {
  test.each([
    ['ESM', 'exports.mjs', EXPORTS_ESM],
    ['CommonJS', 'exports.cjs', EXPORTS_CJS],
  ])('from %s, it has its parts', (_kind, file, program) => {
    const { [ENTRY]: entry, [CHILD_ENTRY]: childEntry, ...found } = exportsFrom(file, program);
    for (const [specifier, names] of Object.entries(found)) expect(names, specifier).toContainEqual(expect.any(String));
    expect(found['holdfast']).toEqual(expect.arrayContaining(CORE));
    expect([[], 'THREAD_FAILED']).toContainEqual(entry);
    expect(childEntry).toEqual([]);
  });

  test('it is the same from both', () => {
    expect(exportsFrom('exports.cjs', EXPORTS_CJS)).toEqual(exportsFrom('exports.mjs', EXPORTS_ESM));
  });

  // Without the flag, Node could load ESM for both.
  test.each([[], ['--no-experimental-require-module']])(
    'in one process by both ways, it has one copy of everything %s',
    (...flags) => {
      const names = specifiers.filter((specifier) => ![ENTRY, CHILD_ENTRY].includes(specifier) && !specifier.endsWith('.json'));
      expect(runWith(flags, 'both.mjs', BOTH_BUILDS, JSON.stringify(names))).toEqual({
        others: [],
        value: 'unrecoverable',
        threads: 1,
      });
    },
  );
});

describe('a job on a SQLite file, with the lock thread', () => {
  test.each([
    ['ESM', 'job.mjs', JOB_ESM],
    ['CommonJS', 'job.cjs', JOB_CJS],
  ])('runs from %s', (_kind, file, program) => {
    expect(run(file, program)).toEqual({ value: 'hello ada', threads: 1, errors: [] });
  });
});

describe('a processor in a file', () => {
  test.each([
    ['ESM', 'sandbox.mjs', SANDBOX_ESM],
    ['CommonJS', 'sandbox.cjs', SANDBOX_CJS],
  ])('runs in threads and in processes from %s', (_kind, file, program) => {
    writeFileSync(join(app, 'processor.cjs'), 'module.exports = async (job) => [job.data, job.lock.held];');
    expect(run(file, program, join(app, 'processor.cjs'))).toEqual({ true: ['ada', true], false: ['ada', true], errors: [] });
  });
});

test('it knows its version', () => {
  const program = `import { Queue } from 'holdfast';
const queue = new Queue('mail', { connection: 'memory:' });
console.log(JSON.stringify((await queue.getMeta()).version));
await queue.close();`;
  expect(run('version.mjs', program)).toBe(`holdfast:${manifest.version}`);
});

test('its types compile for a user who checks libraries too', () => {
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023'],
    module: 'nodenext',
    moduleResolution: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    typeRoots: [join(root, 'node_modules', '@types')],
    types: ['node'],
  };
  for (const file of ['types.mts', 'types.cts']) writeFileSync(join(app, file), TYPES);
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['types.mts', 'types.cts'] }));
  const { stdout, status } = spawnSync(process.execPath, [tsc, '-p', app, '--pretty', 'false'], { encoding: 'utf8' });
  expect(stdout).toBe('');
  expect(status).toBe(0);
});
