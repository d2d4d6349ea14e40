// S0-17: the benchmark measures what one worker and twenty workers of a process cost. Its other commands are tried as well.
import { expect, test } from 'vitest';
import { bench } from '../support/acceptance-bench.js';
import { shared } from '../support/servers/shared.js';

const PATIENCE_MS = 90_000;
/** One for calls, one for wake-ups and one of the lock thread; the pools for PostgreSQL have up to ten, and two in the thread. */
const MOST_CONNECTIONS: Record<string, number> = { sqlite: 2, redis: 3, postgres: 14 };

test.each(['memory', 'sqlite', 'redis', 'postgres'])(
  'S0-17 %s: the benchmark prints what 1 and 20 workers cost',
  async (store) => {
    const env = { REDIS_URL: await shared('redis'), DATABASE_URL: await shared('postgres') };
    const figures = await bench(['--quick', '--store', store], env);
    for (const workers of ['1 worker', '20 workers']) {
      expect(figures.of(store, `memory of a process with ${workers}`)).toBeGreaterThan(0);
      expect(figures.of(store, `lock threads with ${workers}`)).toBe(store === 'memory' ? 0 : 1);
    }
    if (store === 'memory') return;
    const [one, twenty] = ['1 worker', '20 workers'].map((workers) =>
      figures.of(store, `connections to the store with ${workers}`),
    );
    expect(one).toBeGreaterThan(0);
    expect(twenty, 'workers of a process share its connections').toBeLessThanOrEqual(MOST_CONNECTIONS[store] ?? 0);
  },
  PATIENCE_MS,
);

test(
  'bench recovery: after a SIGKILL with default options the job starts elsewhere within 5 s',
  async () => {
    // On servers of its own, which it starts and ends.
    const figures = await bench(['recovery', '--quick'], { REDIS_URL: '', DATABASE_URL: '' });
    for (const store of ['sqlite', 'redis', 'postgres']) {
      const seconds = figures.of(store, 'SIGKILL to start elsewhere');
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThan(5);
    }
  },
  PATIENCE_MS,
);

test(
  'bench claims: a claim does not cost more because more jobs wait',
  async () => {
    const env = { REDIS_URL: await shared('redis'), DATABASE_URL: await shared('postgres') };
    const figures = await bench(['claims', '--quick'], env);
    for (const store of ['sqlite', 'redis', 'postgres']) {
      expect(figures.of(store, 'claim, 1,000 waiting')).toBeGreaterThan(0);
      // One short round is noisy; a cost that grows with the backlog would be a hundred times as high.
      expect(figures.of(store, '100,000 against 1,000 waiting')).toBeLessThan(5);
    }
  },
  PATIENCE_MS,
);
