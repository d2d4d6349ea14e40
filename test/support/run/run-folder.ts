// For vitest's globalSetup: a folder for what the test files of a run make once and share. It is gone after the run.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const VARIABLE = 'HOLDFAST_TEST_RUN_FOLDER';

export default function setup(): (() => void) | undefined {
  // vitest calls it once for each project; the first serves all.
  if (process.env[VARIABLE] !== undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-run-'));
  // Servers run as another user.
  chmodSync(folder, 0o755);
  process.env[VARIABLE] = folder;
  return () => {
    delete process.env[VARIABLE];
    rmSync(folder, { recursive: true, force: true });
  };
}

/** False in programs that use the servers of the tests without vitest. */
export function isTestRun(): boolean {
  return process.env[VARIABLE] !== undefined;
}

/** The folder that `make` fills when the first test file of the run asks for it. Nobody may change what is in it. */
export function madeOnce(name: string, make: (folder: string) => void): string {
  const run = process.env[VARIABLE];
  if (run === undefined) throw new Error('Name test/support/run/run-folder.ts as globalSetup of vitest.');
  const folder = join(run, name);
  if (existsSync(folder)) return folder;
  const fresh = `${folder}.${process.pid}`;
  mkdirSync(fresh);
  make(fresh);
  try {
    renameSync(fresh, folder);
  } catch (error) {
    // Another test file may have been faster.
    if (!existsSync(folder)) throw error;
    rmSync(fresh, { recursive: true, force: true });
  }
  return folder;
}
