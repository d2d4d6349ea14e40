// The types of the installed package, for the compilers and settings that projects have: each entry, seen from ESM and from CommonJS.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packAndInstall } from './install.js';
import { TYPES } from './programs.js';
import { tool } from './tools.js';
import { paced } from '../support/wait/pace.js';

const LIMIT_MS = paced(240_000);

const ENTRIES = `${TYPES}
import Bull, { Job as BullJob, type JobStatus } from 'holdfast/bull';
import { Queue as BunQueue } from 'holdfast/bun-queue';

export const bull = new Bull<Mail>('mail');
export const status: JobStatus = 'waiting';
export const bun = new BunQueue('mail');
export const jobOf = (job: BullJob<Mail>): string => job.data.to;
`;
/** As programs for Bull import it. */
const REQUIRED = `import Queue = require('holdfast/bull');
export const queue: Queue.Queue<{ to: string }> = new Queue<{ to: string }>('mail');
export const counts: Promise<Queue.JobCounts> = queue.getJobCounts();
`;

let folder: string;
let app: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-typescript-'));
  packAndInstall(folder);
  app = join(folder, 'app');
  for (const name of ['typescript54', 'typescript59'] as const) tool(name);
}, LIMIT_MS);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  [
    'typescript54',
    'node10',
    { module: 'commonjs', moduleResolution: 'node10' },
    { 'types.ts': ENTRIES, 'required.ts': REQUIRED },
  ],
  ['typescript54', 'node16', { module: 'node16' }, { 'types.mts': ENTRIES, 'types.cts': ENTRIES, 'required.cts': REQUIRED }],
  ['typescript59', 'bundler', { module: 'esnext', moduleResolution: 'bundler' }, { 'types.ts': ENTRIES }],
] as const)(
  '%s compiles programs that use each entry, with %s',
  (compiler, _setting, options, files) => {
    const modules = tool(compiler);
    const project = mkdtempSync(join(app, 'project-'));
    mkdirSync(join(project, 'node_modules'));
    symlinkSync(join(modules, '@types'), join(project, 'node_modules', '@types'));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text);
    const compilerOptions = {
      target: 'es2022',
      lib: ['es2023'],
      strict: true,
      esModuleInterop: true,
      skipLibCheck: false,
      noEmit: true,
      types: ['node'],
      ...options,
    };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: Object.keys(files) }));
    const tsc = join(modules, 'typescript', 'bin', 'tsc');
    const { stdout, status } = spawnSync(process.execPath, [tsc, '-p', project, '--pretty', 'false'], { encoding: 'utf8' });
    expect(stdout).toBe('');
    expect(status).toBe(0);
  },
  paced(150_000),
);
