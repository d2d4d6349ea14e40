// A fresh clone is installed with `npm ci`, which refuses a lock file with holes. Checked without the network: npm compares the lock file with
// package.json before it fetches anything.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const FOLDERS = ['.', 'bench/peers'];

interface LockFile {
  packages: Record<string, { integrity?: string; os?: string[]; cpu?: string[]; libc?: string[] }>;
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(os.tmpdir(), 'holdfast-lock-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe.each(FOLDERS)('package-lock.json in %s', (name) => {
  it('is accepted by npm ci, with the packages of all platforms', () => {
    mkdirSync(join(folder, 'clone'));
    for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(root, name, file), join(folder, 'clone', file));
    const options = ['--dry-run', '--offline', '--ignore-scripts', '--legacy-peer-deps', '--cache', join(folder, 'cache')];
    const { status, stderr } = spawnSync('npm', ['ci', ...options], { cwd: join(folder, 'clone'), encoding: 'utf8' });
    expect(stderr, 'Run: node scripts/complete-lock.mjs').not.toContain('npm error');
    expect(status).toBe(0);
  });

  it('names no registry, and has the checksum of each package that this platform installs', () => {
    const text = readFileSync(join(root, name, 'package-lock.json'), 'utf8');
    expect(text).not.toContain('"resolved"');
    const { packages } = JSON.parse(text) as LockFile;
    const unchecked = Object.entries(packages).filter(([path, entry]) => path !== '' && entry.integrity === undefined);
    const here = unchecked.filter(
      ([, { os, cpu }]) =>
        (os ?? [process.platform]).includes(process.platform) && (cpu ?? [process.arch]).includes(process.arch),
    );
    expect(here.filter(([, { libc }]) => !libc?.includes('musl')).map(([path]) => path)).toEqual([]);
  });
});
