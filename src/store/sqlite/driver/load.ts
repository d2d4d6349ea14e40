// Loads the first SQLite binding that works, in the order of LADDER. Each file in driver/ knows one binding.
import { HoldfastError, isError } from '../../../errors.js';
import { loadBetterSqlite3 } from './better-sqlite3.js';
import { loadNodeSqlite } from './node-sqlite.js';
import { loadPrebuilt } from './prebuilt.js';
import type { Driver, DriverName } from './types.js';

export type { Database, Driver, DriverName, Statement, Value } from './types.js';

/**
 * Each loader throws with the reason if its binding cannot be loaded. No loader opens a database to find out, because
 * better-sqlite3 12 on Node 24 aborts the process when such an object is collected.
 */
const LADDER: Record<DriverName, () => Promise<Driver>> = {
  'node:sqlite': loadNodeSqlite,
  'better-sqlite3': loadBetterSqlite3,
  '@photostructure/sqlite': loadPrebuilt,
};

let loading: Promise<Driver> | undefined;

export function loadDriver(): Promise<Driver> {
  loading ??= load().catch((error: unknown) => {
    // Let the next call try again, so a user who follows the error's advice needs no restart.
    loading = undefined;
    throw error;
  });
  return loading;
}

async function load(): Promise<Driver> {
  const reasons: string[] = [];
  for (const name of namesToTry()) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- the next one is only for where this one cannot be loaded
      return await LADDER[name]();
    } catch (error) {
      const [firstLine = ''] = (isError(error) ? error.message : String(error)).split('\n');
      reasons.push(`${name}: ${firstLine}`);
    }
  }
  throw missing(reasons.join('; '));
}

/** Returns the bindings to try. `HOLDFAST_SQLITE_DRIVER` names the only one. */
function namesToTry(): DriverName[] {
  const names = Object.keys(LADDER) as DriverName[];
  const forced = process.env['HOLDFAST_SQLITE_DRIVER'];
  if (forced === undefined || forced === '') return names;
  const name = names.find((known) => known === forced);
  if (name !== undefined) return [name];
  throw new HoldfastError(
    'INVALID_OPTION',
    `The environment variable HOLDFAST_SQLITE_DRIVER is '${forced}'. Set it to one of ${names.join(', ')}, or leave it out.`,
    { option: 'HOLDFAST_SQLITE_DRIVER', store: 'sqlite' },
  );
}

function missing(reasons: string): HoldfastError {
  return new HoldfastError(
    'DRIVER_MISSING',
    `No SQLite driver can be loaded (${reasons}). Use Node 22.16 or newer, which has one built in, or type: npm install better-sqlite3@12\n` +
      'If this program is a bundle: leave holdfast out of it (external), or copy node_modules/holdfast/prebuilt beside the bundle. ' +
      'If npm says that its install script is not allowed: npm approve-scripts better-sqlite3, then npm rebuild better-sqlite3. ' +
      'Stores on PostgreSQL and Redis need no SQLite driver.',
    { store: 'sqlite' },
  );
}
