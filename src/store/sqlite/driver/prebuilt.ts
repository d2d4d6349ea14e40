// The native part of @photostructure/sqlite, which has the interface of `node:sqlite`. Its binaries come with Holdfast, in prebuilt/, for the
// versions of Node that have no `node:sqlite`: an install needs no compiler, no install script and no other package.
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Driver } from './types.js';
import { driverOver, type NodeSqlite } from './node-sqlite.js';

export async function loadPrebuilt(): Promise<Driver> {
  return driverOver('@photostructure/sqlite', load());
}

function load(): NodeSqlite {
  const folder = path.join(__dirname, '../../../../prebuilt', `${process.platform}-${process.arch}`);
  const reasons: string[] = [];
  // One for each C library: the wrong one does not load.
  for (const file of readdirSync(folder).sort()) {
    try {
      return createRequire(path.join(folder, file))(path.join(folder, file)) as NodeSqlite;
    } catch (error) {
      reasons.push((error as Error).message);
    }
  }
  throw new Error(reasons[0] ?? `${folder} is empty`);
}
