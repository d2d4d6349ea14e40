// S0-17: the benchmark measures what one worker and twenty workers of a process cost. One tiny iteration of everything else that it
// measures shows that it still can; its peers take part where they are installed.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bench } from '../support/acceptance-bench.js';
import { shared } from '../support/servers/shared.js';

const PATIENCE_MS = 120_000;
const STORES = ['memory', 'sqlite', 'redis', 'postgres'];
const SERVER_STORES = ['sqlite', 'redis', 'postgres'];
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

test.each(STORES)(
  'bench %s: throughput of Holdfast, of the raw limit and of the peers that are installed',
  async (store) => {
    const figures = await bench(['--tiny', '--only', 'adding,backlog', '--store', store], await servers());
    const throughput = figures.rows.filter(({ what }) => /^(add|backlog),/.test(what));
    expect(throughput.map(({ what }) => what)).toEqual([
      'add, one by one',
      'add, 1,000 in flight',
      'add, bulks of 1,000',
      'backlog, concurrency 10',
      ...(store === 'memory' ? [] : ['backlog, concurrency 10, 2 processes']),
    ]);
    for (const { what, contestants } of throughput) {
      expect(contestants.map(({ id }) => id)).toEqual(expect.arrayContaining(['holdfast', 'raw']));
      for (const { label, values } of contestants) expect(values[0], `${what}: ${label}`).toBeGreaterThan(0);
    }
    for (const id of ['holdfast', 'raw'])
      expect(figures.of(store, 'producer CPU an add, one by one', id), `${id}: processor time`).toBeGreaterThan(0);
    if (store === 'memory') return;
    expect(figures.of(store, 'smaller share, concurrency 10, 2 processes')).toBeLessThanOrEqual(50);
  },
  PATIENCE_MS,
);

test.each(SERVER_STORES)(
  'bench %s: latency, the cost of renewal, sweeps and a fleet, and a blocked loop',
  async (store) => {
    const only = 'latency,renewal,fleet,blocked';
    const figures = await bench(['--tiny', '--peers', 'none', '--only', only, '--store', store], await servers());
    for (const where of ['one process', 'two processes']) {
      const p50 = figures.of(store, `add to start, idle, ${where}, p50`);
      expect(p50).toBeGreaterThan(0);
      expect(figures.of(store, `add to start, idle, ${where}, p99`)).toBeGreaterThanOrEqual(p50);
    }
    expect(figures.of(store, 'add to start, idle, one process, p50', 'raw')).toBeGreaterThan(0);
    for (const what of ['renewal, 1,000 active jobs', 'sweep, nothing dead, 1,000', 'longest sweep call, 1 % dead of 1,000'])
      expect(figures.of(store, what)).toBeGreaterThan(0);
    expect(figures.of(store, '100 sessions, all upkeep')).toBeGreaterThanOrEqual(0);
    if (store !== 'sqlite') expect(figures.of(store, '100 sessions, renewals', 'raw')).toBeGreaterThanOrEqual(0);
    expect(figures.of(store, 'ran twice of 2, blocked loop')).toBe(0);
  },
  PATIENCE_MS,
);

test(
  'bench --only recovery: after a SIGKILL with default options the job starts elsewhere within 5 s',
  async () => {
    // On servers of its own, which it starts and ends.
    const args = ['--tiny', '--peers', 'none', '--only', 'recovery'];
    const figures = await bench(args, { REDIS_URL: '', DATABASE_URL: '' });
    for (const store of SERVER_STORES) {
      const seconds = figures.of(store, 'SIGKILL to start elsewhere');
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThan(5);
    }
  },
  PATIENCE_MS,
);

test(
  'bench --only claims: a claim does not cost more because more jobs wait',
  async () => {
    const figures = await bench(['--quick', '--peers', 'none', '--only', 'claims'], await servers());
    for (const store of SERVER_STORES) {
      expect(figures.of(store, 'claim, 500 waiting')).toBeGreaterThan(0);
      // One short round is noisy; a cost that grows with the backlog would be a hundred times as high.
      expect(figures.of(store, 'claim, 50,000 against 500 waiting')).toBeLessThan(5);
    }
  },
  PATIENCE_MS,
);

test('bench --from: ratios are taken within a round, and their median is held against the target', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-report-'));
  try {
    const line = (id: string, kind: string, values: number[]): object => ({ id, kind, label: id, values });
    const row = {
      ...{ store: 'redis', what: 'backlog, concurrency 100', unit: 'jobs/s', better: 'more' },
      contestants: [
        line('holdfast', 'ours', [3000, 900, 6000]),
        // The ratios are 3, 0.5 and 4; that of the medians would be 2.
        line('bullmq', 'peer', [1000, 1800, 1500]),
        line('raw', 'raw', [6000, 1800, 12_000]),
      ],
    };
    const machine = { cpu: 'some', cores: 2, memoryGiB: 1, system: 'linux' };
    const file = join(folder, 'report.json');
    const report = { machine, versions: {}, command: 'npm run bench', date: 'today', rounds: 3, rows: [row], failures: [] };
    await writeFile(file, JSON.stringify({ ...report, judged: true }));
    const { text } = await bench(['--from', file]);
    expect(text).toMatch(/holdfast +3,000 \(900 … 6,000\)/);
    expect(text).toMatch(/bullmq .* 3 × target 3 ×: met/);
    expect(text).toMatch(/raw .* 0\.500 × target 0\.55 ×: missed by 9 %/);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

async function servers(): Promise<NodeJS.ProcessEnv> {
  return { REDIS_URL: await shared('redis'), DATABASE_URL: await shared('postgres') };
}
