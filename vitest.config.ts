import { fileURLToPath } from 'node:url';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// Groups of the same order run side by side; a group starts when the one before has ended. What needs both cores runs two files at a time,
// what mostly waits (for locks to end, for servers to come back) five, the rest three.
const mixed = { order: 0, workers: 3 };
const waiting = { order: 1, workers: 5 };
const busy = { order: 2, workers: 2 };

// `npm run test:all` and `npm test -- <file>` run these files, the gate does not. CONTRIBUTING.md says why.
const NOT_IN_THE_GATE = ['test/conformance/postgres-pooler.test.ts', 'test/chaos/soak.test.ts'];
const exclude = process.env['HOLDFAST_GATE'] ? NOT_IN_THE_GATE : [];

function group(name: string, { order, workers }: { order: number; workers: number }): TestProjectInlineConfiguration {
  const include = [`test/${name}/**/*.test.ts`];
  return { extends: true, test: { name, include, exclude, maxWorkers: workers, sequence: { groupOrder: order } } };
}

// `HOLDFAST_SQLITE_DRIVER=node:sqlite npm test -- test/engines/sqlite`: the SQLite suite on another driver.
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
    globalSetup: [
      'test/support/build.ts',
      'test/support/pace-of-run.ts',
      'test/support/run-folder.ts',
      'test/support/servers/global.ts',
    ],
    setupFiles: ['test/support/patience.ts', 'test/support/leaks.ts'],
    // A test that passes at the second try has told something: look at it.
    retry: 0,
    server: { deps: { external: [/\/dist\//, /\/simulation\/.*\.mjs$/] } },
    projects: [
      ...['unit', 'engines', 'conformance', 'model', 'hostile', 'simulation', 'package', 'docs'].map((name) =>
        group(name, mixed),
      ),
      ...['acceptance', 'faults', 'examples'].map((name) => group(name, waiting)),
      ...['runtimes', 'chaos'].map((name) => group(name, busy)),
    ],
  },
});
