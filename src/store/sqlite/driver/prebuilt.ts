// Loads the native part of @photostructure/sqlite, which has the interface of `node:sqlite`. Holdfast ships its binaries in
// prebuilt/ for the versions of Node without `node:sqlite`: an installation needs no compiler, no install script and no other
// package.
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { ownFolders, resolveOutside } from '../../../runtime/outside.js';
import type { Driver } from './types.js';
import { driverOver, type NodeSqlite } from './node-sqlite.js';

export async function loadPrebuilt(): Promise<Driver> {
  return driverOver('@photostructure/sqlite', load());
}

function load(): NodeSqlite {
  const folder = findFolder();
  const reasons: string[] = [];
  // The folder has one file for each C library; the wrong one does not load.
  for (const file of readdirSync(folder).sort()) {
    try {
      return createRequire(path.join(folder, file))(path.join(folder, file)) as NodeSqlite;
    } catch (error) {
      reasons.push((error as Error).message);
    }
  }
  throw new Error(reasons[0] ?? `${folder} is empty`);
}

/**
 * Finds the folder with the binaries: in the package of this file; for a bundle, beside the bundle or in the package that the
 * program resolves.
 */
function findFolder(): string {
  const platform = `${process.platform}-${process.arch}`;
  const found = [...places()].map((place) => path.join(place, 'prebuilt', platform)).find((folder) => existsSync(folder));
  if (found === undefined) throw new Error(`there is no prebuilt/${platform}`);
  return found;
}

function* places(): Iterable<string> {
  if (typeof __dirname === 'string') yield path.join(__dirname, '../../../..');
  yield* ownFolders();
  try {
    yield path.dirname(resolveOutside('holdfast/package.json'));
  } catch {
    // The program cannot resolve the package.
  }
}
