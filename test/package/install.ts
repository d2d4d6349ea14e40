// Packs the package and installs the tarball with npm into an empty application, once in a run of the tests. The package needs no other one, so
// neither the network nor a compiler is needed.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { madeOnce } from '../support/run/run-folder.js';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** A file, or one for each condition. */
export type ExportTarget = string | { [condition: string]: ExportTarget };

export interface Manifest {
  name: string;
  version: string;
  exports: Record<string, ExportTarget>;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  scripts?: Record<string, string>;
  bin?: string | Record<string, string>;
}

export function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

/** Makes `folder`/app, an application that has the package installed; answers the files in the tarball. */
export function packAndInstall(folder: string): string[] {
  const { file, files } = pack();
  // npm takes seconds to install it, and does it the same way each time.
  const installed = madeOnce('installed', (fresh) => {
    npm(newApp(fresh), ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', file]);
  });
  cpSync(installed, join(folder, 'app'), { recursive: true });
  return files;
}

/** The tarball, and the files in it. */
export function pack(): { file: string; files: string[] } {
  const folder = madeOnce('packed', (fresh) => {
    const packed = npm(root, ['pack', '--json', '--ignore-scripts', '--pack-destination', fresh]);
    writeFileSync(join(fresh, 'report.json'), packed);
  });
  const packed = readFileSync(join(folder, 'report.json'), 'utf8');
  const [tarball] = JSON.parse(packed) as { filename: string; files: { path: string }[] }[];
  if (tarball === undefined) throw new Error(`npm pack made no tarball: ${packed}`);
  return { file: join(folder, tarball.filename), files: tarball.files.map(({ path }) => path) };
}

/** An application without dependencies. */
export function newApp(folder: string): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'app', version: '1.0.0', private: true }));
  return folder;
}

export function npm(cwd: string, args: string[]): string {
  const cli = process.env['npm_execpath'];
  const [command, first] = cli?.endsWith('.js') === true ? [process.execPath, [cli]] : ['npm', []];
  return execFileSync(command, [...first, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
