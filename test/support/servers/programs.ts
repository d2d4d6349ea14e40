// Where the programs are that tests start. What is missing is installed with apt-get where that is allowed (by root, on Debian and its
// kin); elsewhere the test fails with the line to type. A missing server is never a reason to skip a test.
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

interface Need {
  /** Found together in one folder, so that an initdb never meets another version's postgres. */
  files: string[];
  package: string;
  /** Looked at after the PATH. */
  folders(): string[];
}

const NEEDS = {
  redis: { files: ['redis-server'], package: 'redis-server', folders: () => [] },
  postgres: { files: ['initdb', 'postgres'], package: 'postgresql', folders: () => below('/usr/lib/postgresql', 'bin') },
  pgbouncer: { files: ['pgbouncer'], package: 'pgbouncer', folders: () => ['/usr/sbin'] },
  faketime: { files: ['libfaketime.so.1'], package: 'faketime', folders: () => below('/usr/lib', 'faketime') },
} satisfies Record<string, Need>;

export type Program = keyof typeof NEEDS;

export interface Surroundings {
  path: string;
  isRoot: boolean;
  /** Debian starts a service as soon as it is installed, unless this file forbids it. */
  policy: string;
}

// Packages that could not be installed. In the environment, so that no test file tries what the set-up has tried in vain.
const IN_VAIN = 'HOLDFAST_TEST_INSTALLED_IN_VAIN';

/** The folder where the program is. */
export async function folderOf(program: Program, surroundings: Partial<Surroundings> = {}): Promise<string> {
  const usual = { path: process.env['PATH'] ?? '', isRoot: process.getuid?.() === 0, policy: '/usr/sbin/policy-rc.d' };
  const { path, isRoot, policy } = { ...usual, ...surroundings };
  const need: Need = NEEDS[program];
  const look = (): string | undefined =>
    [...path.split(delimiter), ...need.folders()].find((folder) => need.files.every((file) => existsSync(join(folder, file))));
  const found = look();
  if (found !== undefined) return found;
  const failure = isRoot ? await install(need.package, path, policy) : 'Only root may install it.';
  const installed = look();
  if (installed !== undefined) return installed;
  const line = `${isRoot ? '' : 'sudo '}apt-get install -y --no-install-recommends ${need.package}`;
  throw new Error(
    `This test starts ${need.files.join(' and ')}, which is not installed. Type this, or its like:\n  ${line}\n${failure}`,
  );
}

/** Answers what went wrong, for people. */
async function install(name: string, path: string, policy: string): Promise<string> {
  const inVain = process.env[IN_VAIN]?.split(' ') ?? [];
  if (inVain.includes(name)) return 'Installing it was tried before, in vain.';
  const folders = path.split(delimiter);
  const command = folders.map((folder) => join(folder, 'apt-get')).find(existsSync);
  if (command === undefined) return 'There is no apt-get here to install it with.';
  console.log(`${name} is missing: apt-get install ${name}`);
  const run = (...args: string[]): Promise<unknown> =>
    promisify(execFile)(command, ['-o', 'DPkg::Lock::Timeout=120', ...args], {
      env: { ...process.env, PATH: path, DEBIAN_FRONTEND: 'noninteractive' },
    });
  const ours = !existsSync(policy);
  if (ours) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    // Without network the lists that are there may still do.
    await run('update').catch(() => undefined);
    await run('install', '-y', '--no-install-recommends', name);
    return 'It was installed, and is not where it was looked for.';
  } catch (error) {
    process.env[IN_VAIN] = [...inVain, name].join(' ');
    return String((error as { stderr?: unknown }).stderr ?? error);
  } finally {
    if (ours) rmSync(policy, { force: true });
  }
}

/** `parent/<any>/name`, the highest number first. */
function below(parent: string, name: string): string[] {
  if (!existsSync(parent)) return [];
  const between = readdirSync(parent).sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  return between.map((folder) => join(parent, folder, name));
}
