// Loads the SQLite of the runtime itself: Node from 22.16 on, Bun and Deno. It needs no installation.
import { pathToFileURL } from 'node:url';
import type { Driver, DriverName } from './types.js';
import { type Compiled, LazyDatabase } from './lazy-database.js';

/** The part of `node:sqlite` that Holdfast uses. The types of Node 20 do not include it. */
export interface NodeSqlite {
  DatabaseSync: new (path: string) => NodeDatabase;
  StatementSync: { prototype: object };
}

interface NodeDatabase {
  prepare(sql: string): NodeStatement;
  exec(sql: string): void;
  close(): void;
  readonly isTransaction: boolean;
  /** Not in every runtime. */
  readonly isOpen?: boolean;
}

interface NodeStatement extends Compiled {
  setReturnArrays(enabled: boolean): void;
  setReadBigInts(enabled: boolean): void;
}

export async function loadNodeSqlite(): Promise<Driver> {
  const module = load();
  if (!('setReturnArrays' in module.StatementSync.prototype))
    throw new Error('this runtime has an older one; it needs Node 22.16 or newer');
  return driverOver('node:sqlite', module);
}

/** Makes a driver from any module of this shape. */
export function driverOver(name: DriverName, { DatabaseSync }: NodeSqlite): Driver {
  return {
    name,
    open: (path, { mustExist = false, readOnly = false } = {}) => {
      const mode = readOnly ? 'ro' : mustExist ? 'rw' : 'rwc';
      return over(new DatabaseSync(mode === 'rwc' ? path : `${pathToFileURL(path).href}?mode=${mode}`));
    },
    adopt: (connection) => (connection instanceof DatabaseSync ? over(connection) : undefined),
  };
}

function over(db: NodeDatabase): LazyDatabase {
  return new LazyDatabase({
    compile(sql) {
      const statement = db.prepare(sql);
      statement.setReturnArrays(true);
      // A user may have set this for the whole connection.
      statement.setReadBigInts(false);
      return statement;
    },
    exec: (sql) => db.exec(sql),
    close: () => db.close(),
    isInTransaction: () => db.isOpen !== false && db.isTransaction,
  });
}

/**
 * Loads the module without the warning that Node up to 24.14 prints. The users of Holdfast did not ask for `node:sqlite` and cannot
 * act on the warning.
 */
function load(): NodeSqlite {
  const { emitWarning } = process;
  process.emitWarning = ((warning: string | Error, ...rest: never[]) => {
    if (!String(warning).startsWith('SQLite is an experimental feature')) emitWarning(warning, ...rest);
  }) as typeof process.emitWarning;
  try {
    // The call is synchronous, so no other code can see the replaced function.
    const module = process.getBuiltinModule?.('node:sqlite') as NodeSqlite | undefined;
    if (module === undefined) throw new Error(`Node ${process.versions.node} does not have it; it needs Node 22.16 or newer`);
    return module;
  } finally {
    process.emitWarning = emitWarning;
  }
}
