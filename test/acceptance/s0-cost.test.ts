// S0-17: the benchmark measures what one worker and twenty workers of a process cost.
import { expect, test } from 'vitest';
import { bench, PATIENCE_MS, servers } from '../support/processes/bench.js';
import { inThisRun } from '../support/run/matrix.js';

const STORES = inThisRun(['memory', 'sqlite', 'redis', 'postgres']);
/** One for calls, one for wake-ups and one of the lock thread; the pools for PostgreSQL have up to ten, and two in the thread. */
const MOST_CONNECTIONS: Record<string, number> = { sqlite: 2, redis: 3, postgres: 14 };

test.each(STORES)(
  'S0-17 %s: the benchmark prints what 1 and 20 workers cost',
  async (store) => {
    const figures = await bench(['--tiny', '--peers', 'none', '--only', 'footprint', '--store', store], await servers());
    for (const workers of ['1 worker', '20 workers']) {
      expect(figures.text).toContain(`memory of a process with ${workers} [MiB]`);
      expect(figures.of(store, `memory of a process with ${workers}`)).toBeGreaterThan(0);
      expect(figures.of(store, `threads of ${workers}`)).toBe(store === 'memory' ? 0 : 1);
    }
    if (store === 'memory') return;
    expect(figures.of(store, 'connections of 1 worker')).toBeGreaterThan(0);
    const twenty = figures.of(store, 'connections of 20 workers');
    expect(twenty, 'workers of a process share its connections').toBeLessThanOrEqual(MOST_CONNECTIONS[store] ?? 0);
  },
  PATIENCE_MS,
);
