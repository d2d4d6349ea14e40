import { fileURLToPath } from 'node:url';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// Groups of the same order run side by side; a group starts when the one before has ended. What calculates runs two files at a time, what
// mostly waits (for locks to end, for servers to come back) four.
const busy = { workers: 2 };
const waiting = { workers: 4 };

function group(name: string, order: number, { workers }: { workers: number }): TestProjectInlineConfiguration {
  return {
    extends: true,
    test: { name, include: [`test/${name}/**/*.test.ts`], maxWorkers: workers, sequence: { groupOrder: order } },
  };
}

export default defineConfig({
  resolve: {
    alias: [
      // The built package, as a user gets it; tests of the inside import ../../src instead.
      { find: /^holdfast$/, replacement: file('dist/index.js') },
      { find: /^holdfast\/testing$/, replacement: file('dist/testing/index.js') },
      { find: /^holdfast\/(bull|bun-queue)$/, replacement: file('dist/compat/$1/index.js') },
    ],
  },
  test: {
    pool: 'forks',
    globalSetup: ['test/support/build.ts', 'test/support/servers/global.ts'],
    setupFiles: ['test/support/leaks.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // A test that passes at the second try has told something: look at it.
    retry: 0,
    server: { deps: { external: [/\/dist\//, /\/simulation\/.*\.mjs$/] } },
    projects: [
      group('unit', 0, busy),
      group('conformance', 0, busy),
      group('model', 0, busy),
      group('hostile', 0, busy),
      group('simulation', 0, busy),
      group('package', 1, busy),
      group('docs', 1, busy),
      group('examples', 1, busy),
      group('acceptance', 2, waiting),
      group('faults', 3, waiting),
      group('chaos', 4, busy),
    ],
  },
});
