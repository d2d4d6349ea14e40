import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { MixedOrder } from './test/support/run/mixed-order.js';

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/**
 * Test files that run at the same time. They wait most of the time: 2,600 s for 800 s of their own processor time, so there are more than the
 * two cores of the machine that the gate is made for.
 */
const WORKERS = 5;

// `npm run test:all` and `npm test -- <file>` run these files, the gate does not. CONTRIBUTING.md says why.
const NOT_IN_THE_GATE = ['test/conformance/postgres-pooler.test.ts', 'test/chaos/soak.test.ts'];
const exclude = process.env['HOLDFAST_GATE'] ? NOT_IN_THE_GATE : [];

// `HOLDFAST_SQLITE_DRIVER=node:sqlite npm test -- test/engines/sqlite`: the SQLite suite on another driver.
const driver = process.env['HOLDFAST_SQLITE_DRIVER'] ?? 'better-sqlite3';
const observer =
  driver === 'better-sqlite3' ? [] : [{ find: /^better-sqlite3$/, replacement: file('test/support/scenes/sqlite-observer.ts') }];

export default defineConfig({
  resolve: {
    alias: [
      ...observer,
      // The built package, as a user gets it; tests of the inside import ../../src instead.
      { find: /^holdfast$/, replacement: file('dist/index.mjs') },
      { find: /^holdfast\/testing$/, replacement: file('dist/testing/index.mjs') },
      { find: /^holdfast\/(bull|bun-queue)$/, replacement: file('dist/compat/$1/index.mjs') },
    ],
  },
  test: {
    pool: 'forks',
    globalSetup: [
      'test/support/run/build.ts',
      'test/support/wait/pace-of-run.ts',
      'test/support/run/run-folder.ts',
      'test/support/servers/global.ts',
    ],
    setupFiles: ['test/support/run/costs.ts', 'test/support/wait/patience.ts', 'test/support/run/leaks.ts'],
    // A test that passes at the second try has told something: look at it.
    retry: 0,
    server: { deps: { external: [/\/dist\//, /\/simulation\/.*\.mjs$/] } },
    include: ['test/**/*.test.ts'],
    exclude,
    maxWorkers: WORKERS,
    // Tests that a file marks as concurrent only wait: for a second in which nothing may happen.
    maxConcurrency: 20,
    sequence: { sequencer: MixedOrder },
  },
});
