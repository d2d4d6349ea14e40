import { fileURLToPath } from 'node:url';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// Groups of the same order run side by side; a group starts when the one before has ended. What needs both cores runs two files at a time,
// what mostly waits (for locks to end, for servers to come back) four, the rest three.
const busy = { workers: 2 };
const mixed = { workers: 3 };
const waiting = { workers: 4 };

function group(name: string, order: number, { workers }: { workers: number }): TestProjectInlineConfiguration {
  return {
    extends: true,
    test: { name, include: [`test/${name}/**/*.test.ts`], maxWorkers: workers, sequence: { groupOrder: order } },
  };
}

// `HOLDFAST_SQLITE_DRIVER=node:sqlite npm test -- test/unit/sqlite`: the SQLite suite on another driver.
const driver = process.env['HOLDFAST_SQLITE_DRIVER'] ?? 'better-sqlite3';
const observer =
  driver === 'better-sqlite3' ? [] : [{ find: /^better-sqlite3$/, replacement: file('test/support/sqlite-observer.ts') }];

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
    globalSetup: ['test/support/build.ts', 'test/support/pace-of-run.ts', 'test/support/servers/global.ts'],
    setupFiles: ['test/support/patience.ts', 'test/support/leaks.ts'],
    // A test that passes at the second try has told something: look at it.
    retry: 0,
    server: { deps: { external: [/\/dist\//, /\/simulation\/.*\.mjs$/] } },
    projects: [
      group('unit', 0, mixed),
      group('conformance', 0, mixed),
      group('model', 0, mixed),
      group('hostile', 0, mixed),
      group('simulation', 0, mixed),
      group('package', 1, waiting),
      group('docs', 1, waiting),
      group('examples', 1, waiting),
      group('acceptance', 1, waiting),
      group('faults', 2, waiting),
      group('runtimes', 3, busy),
      group('chaos', 3, busy),
    ],
  },
});
