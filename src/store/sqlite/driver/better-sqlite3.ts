// Loads better-sqlite3, if it is installed. Version 12 compiles during installation or downloads a binary. Version 13 contains its
// binaries and needs Node 22.
import path from 'node:path';
import { requireOutside } from '../../../runtime/outside.js';
import type { Driver } from './types.js';
import { LazyDatabase } from './lazy-database.js';

type Package = typeof import('better-sqlite3');

async function loadPackage(): Promise<Package> {
  try {
    return (await import('better-sqlite3')).default;
  } catch (error) {
    return requireOutside('better-sqlite3', error) as Package;
  }
}

export async function loadBetterSqlite3(): Promise<Driver> {
  const Binding = await loadPackage();
  const oldNode = Number(process.versions.node.split('.')[0]) < 22;
  if (oldNode && 'explain' in Binding.prototype)
    throw new Error('version 13 would end the process on Node 20; install version 12');
  loadNative(Binding);
  return {
    name: 'better-sqlite3',
    open: (file, { mustExist: fileMustExist = false, readOnly: readonly = false } = {}) =>
      over(new Binding(file, { timeout: 0, fileMustExist, readonly })),
    adopt: (connection) => (connection instanceof Binding ? over(connection) : undefined),
  };
}

function over(db: InstanceType<Package>): LazyDatabase {
  return new LazyDatabase({
    compile(sql) {
      const statement = db.prepare(sql);
      // A user may have set this for the whole connection.
      statement.safeIntegers(false);
      return statement.reader ? statement.raw() : statement;
    },
    exec: (sql) => void db.exec(sql),
    close: () => void db.close(),
    isInTransaction: () => db.open && db.inTransaction,
  });
}

/**
 * Loads the native part of the package, which otherwise loads with the first database. A path in a folder that cannot exist makes
 * the package load that part and then stop before it creates any native object.
 */
function loadNative(Binding: new (file: string) => unknown): void {
  try {
    new Binding(path.join(process.execPath, 'no-folder', 'no-file'));
  } catch (error) {
    if (!/directory does not exist/.test(String(error))) throw error;
  }
}
