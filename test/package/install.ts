// Packs the package and installs the tarball with npm into an empty application. It needs no other package, so neither the network nor a
// compiler is needed.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** A file, or one for each condition. */
export type ExportTarget = string | { [condition: string]: ExportTarget };

export interface Manifest {
  name: string;
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
  const packed = npm(root, ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]);
  const [tarball] = JSON.parse(packed) as { filename: string; files: { path: string }[] }[];
  if (tarball === undefined) throw new Error(`npm pack made no tarball: ${packed}`);
  const app = join(folder, 'app');
  mkdirSync(app, { recursive: true });
  writeFileSync(join(app, 'package.json'), JSON.stringify({ name: 'app', version: '1.0.0', private: true }));
  npm(app, ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', join(folder, tarball.filename)]);
  return tarball.files.map(({ path }) => path);
}

export function npm(cwd: string, args: string[]): string {
  const cli = process.env['npm_execpath'];
  const [command, first] = cli?.endsWith('.js') === true ? [process.execPath, [cli]] : ['npm', []];
  return execFileSync(command, [...first, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
