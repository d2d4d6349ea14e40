// One tiny iteration of the rest: what the benchmark measures of latency, of the upkeep of locks and of crashes.
import { expect, test } from 'vitest';
import { bench, PATIENCE_MS, servers } from '../support/processes/bench.js';
import { FULL, oneInThisRun } from '../support/run/matrix.js';

const STORES = oneInThisRun(['sqlite', 'redis', 'postgres']);
const SELECTED = STORES.flatMap((store) => ['--store', store]);

test.each(STORES)(
  'bench %s measures latency, renewal, sweeps, schedules, a fleet, and a blocked loop',
  async (store) => {
    const only = 'latency,renewal,schedules,fleet,blocked';
    const figures = await bench(['--tiny', '--peers', 'none', '--only', only, '--store', store], await servers());
    for (const where of ['one process', 'two processes']) {
      const p50 = figures.of(store, `add to start, idle, ${where}, p50`);
      expect(p50).toBeGreaterThan(0);
      expect(figures.of(store, `add to start, idle, ${where}, p99`)).toBeGreaterThanOrEqual(p50);
    }
    expect(figures.of(store, 'add to start, idle, one process, p50', 'raw')).toBeGreaterThan(0);
    for (const what of ['renewal, 1,000 active jobs', 'sweep, nothing dead, 1,000', 'longest sweep call, 1 % dead of 1,000'])
      expect(figures.of(store, what)).toBeGreaterThan(0);
    expect(figures.of(store, 'schedules made')).toBeGreaterThan(0);
    expect(figures.of(store, '100 schedules within 1 s, late, p99')).toBeGreaterThanOrEqual(0);
    expect(figures.of(store, '100 sessions, all upkeep')).toBeGreaterThanOrEqual(0);
    if (store !== 'sqlite') expect(figures.of(store, '100 sessions, renewals', 'raw')).toBeGreaterThanOrEqual(0);
    expect(figures.of(store, 'ran twice of 2, blocked loop')).toBe(0);
  },
  PATIENCE_MS,
);

test.runIf(FULL)(
  'bench --only sandbox measures the time and the memory of processors in threads and in processes',
  async () => {
    const figures = await bench(['--tiny', '--peers', 'none', '--only', 'sandbox', '--store', 'memory'], {});
    for (const kind of ['threads', 'processes']) {
      expect(figures.of('memory', `processor time a file adds to a job, ${kind}`)).toBeGreaterThanOrEqual(0);
      expect(figures.of('memory', `memory of a slot, ${kind}`)).toBeGreaterThan(1);
    }
  },
  PATIENCE_MS,
);

test(
  'bench --only recovery measures that a job starts elsewhere within 5 s of a SIGKILL with default options',
  async () => {
    // On servers of its own, which it starts and ends.
    const args = ['--tiny', '--peers', 'none', '--only', 'recovery', ...SELECTED];
    const figures = await bench(args, { REDIS_URL: '', DATABASE_URL: '' });
    for (const store of STORES) {
      const seconds = figures.of(store, 'SIGKILL to start elsewhere');
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThan(5);
    }
  },
  PATIENCE_MS,
);

test(
  'bench --only claims measures that a claim does not cost more when more jobs wait',
  async () => {
    const figures = await bench(['--quick', '--peers', 'none', '--only', 'claims', ...SELECTED], await servers());
    for (const store of STORES) {
      expect(figures.of(store, 'claim, 500 waiting')).toBeGreaterThan(0);
      // One short round is noisy; a cost that grows with the backlog would be a hundred times as high.
      expect(figures.of(store, 'claim, 50,000 against 500 waiting')).toBeLessThan(5);
    }
  },
  PATIENCE_MS,
);
