// The runtimes that the package supports, other than the Node that runs the tests. They come from the npm registry at their first use.
import { join } from 'node:path';
import type { DriverName } from '../../src/store/sqlite/driver/load.js';
import { installed, nodeOf } from '../package/tools.js';

export interface Runtime {
  /** The command that runs a file. */
  command: string[];
  /** The SQLite driver that it takes. */
  driver: DriverName;
  env: Record<string, string>;
  /** Examples that it cannot run. */
  leftOut: string[];
}

const BUN = '1.4.4';
const DENO = '2.9.6';

const RUNTIMES = {
  // The tests of the SQLite store run on better-sqlite3 there.
  'Node 20': () => node(20, '@photostructure/sqlite'),
  'Node 22': () => node(22, 'node:sqlite'),
  'Node 24': () => node(24, 'node:sqlite'),
  'Node 26': () => node(26, 'node:sqlite'),
  Bun: (): Runtime => {
    const platform = process.platform === 'win32' ? 'windows' : process.platform;
    const name = `@oven/bun-${platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}`;
    return own([join(installed('bun', [`${name}@${BUN}`]), name, 'bin', 'bun')]);
  },
  Deno: (): Runtime => {
    const name = `@deno/${process.platform}-${process.arch}${process.platform === 'linux' ? '-glibc' : ''}`;
    return own([join(installed('deno', [`${name}@${DENO}`]), name, 'deno'), 'run', '--allow-all', '--no-lock']);
  },
};

export type RuntimeName = keyof typeof RUNTIMES;
export const RUNTIME_NAMES = Object.keys(RUNTIMES) as RuntimeName[];

export function runtime(name: RuntimeName): Runtime {
  return RUNTIMES[name]();
}

/** Its `node:test` works in its own test runner alone. */
function own(command: string[]): Runtime {
  return { command, driver: 'node:sqlite', env: {}, leftOut: ['unit-test.ts'] };
}

function node(major: number, driver: DriverName): Runtime {
  return { command: [nodeOf(major)], driver, env: { ...(major === 20 && { HOLDFAST_SQLITE_DRIVER: driver }) }, leftOut: [] };
}
