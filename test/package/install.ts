// Packs the package and installs the tarball with npm into an empty application. The compiled better-sqlite3 of this repository
// is put there beforehand, with all that it depends on, so that npm finds it installed: neither the network nor a minute of
// compiling is needed, and the binding that is used is the real one. What this leaves out is the compiling itself, which
// installing this repository does.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** A file, or one for each condition. */
export type ExportTarget = string | { [condition: string]: ExportTarget };

export interface Manifest {
  name: string;
  exports: Record<string, ExportTarget>;
  dependencies?: Record<string, string>;
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
  mkdirSync(join(app, 'node_modules', '.bin'), { recursive: true });
  writeFileSync(join(app, 'package.json'), JSON.stringify({ name: 'app', version: '1.0.0', private: true }));
  const present = new Set<string>();
  for (const name of Object.keys(manifestOf(root).dependencies ?? {})) provide(name, app, present);
  npm(app, ['install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', join(folder, tarball.filename)]);
  return tarball.files.map(({ path }) => path);
}

function provide(name: string, app: string, present: Set<string>): void {
  const source = join(root, 'node_modules', name);
  if (present.has(name) || !existsSync(source)) return;
  present.add(name);
  // Sources and object files of the binding: 25 MB that nobody loads.
  const unused = /better-sqlite3\/(deps|src|build\/Release\/(\.deps|obj|obj\.target|sqlite3\.a))(\/|$)/;
  cpSync(source, join(app, 'node_modules', name), { recursive: true, filter: (path) => !unused.test(path) });
  const { bin, dependencies = {} } = manifestOf(source);
  // npm takes a package without its links in .bin for a broken one, and fetches it again.
  for (const [link, file] of Object.entries(typeof bin === 'string' ? { [name]: bin } : (bin ?? {}))) {
    symlinkSync(join('..', name, file), join(app, 'node_modules', '.bin', link));
  }
  for (const dependency of Object.keys(dependencies)) provide(dependency, app, present);
}

export function npm(cwd: string, args: string[]): string {
  const cli = process.env['npm_execpath'];
  const [command, first] = cli?.endsWith('.js') === true ? [process.execPath, [cli]] : ['npm', []];
  return execFileSync(command, [...first, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
