// One tiny iteration of what the benchmark measures of throughput shows that it still can; its peers take part where they are installed.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bench, PATIENCE_MS, servers } from '../support/processes/bench.js';
import { oneInThisRun } from '../support/run/matrix.js';

const STORES = oneInThisRun(['memory', 'sqlite', 'redis', 'postgres']);

test.each(STORES)(
  'bench %s measures the throughput of Holdfast, the raw limit and the installed peers',
  async (store) => {
    const figures = await bench(['--tiny', '--only', 'adding,backlog', '--store', store], await servers());
    const throughput = figures.rows.filter(({ what }) => /^(add|backlog),/.test(what));
    expect(throughput.map(({ what }) => what)).toEqual([
      'add, one by one',
      'add, 1,000 in flight',
      'add, bulks of 1,000',
      'backlog, concurrency 10',
      'backlog, concurrency 10, removed',
      ...(store === 'memory' ? [] : ['backlog, concurrency 10, 2 processes', 'backlog, concurrency 10, 2 processes, removed']),
    ]);
    for (const { what, contestants } of throughput) {
      const expected = what.endsWith('removed') ? ['holdfast'] : ['holdfast', 'raw'];
      expect(contestants.map(({ id }) => id)).toEqual(expect.arrayContaining(expected));
      for (const { label, values } of contestants) expect(values[0], `${what}: ${label}`).toBeGreaterThan(0);
    }
    for (const id of ['holdfast', 'raw'])
      expect(figures.of(store, 'producer CPU an add, one by one', id), `${id}: processor time`).toBeGreaterThan(0);
    if (store === 'memory') return;
    expect(figures.of(store, 'smaller share, concurrency 10, 2 processes')).toBeLessThanOrEqual(50);
  },
  PATIENCE_MS,
);

test(
  'bench measures backlogs of several sizes, and with handlers that wait, as lines of their own',
  async () => {
    const args = ['--finished', 'removed', '--jobs', '100,200', '--handler-ms', '0,10', '--processes', '1', '--peers', 'none'];
    const figures = await bench(['--tiny', '--only', 'backlog', '--store', 'sqlite', '--contestant', 'holdfast', ...args]);
    expect(figures.rows.map(({ what }) => what).filter((what) => what.startsWith('backlog,'))).toEqual([
      'backlog, concurrency 10, 100 jobs, removed',
      'backlog, concurrency 10, handler 10 ms, removed',
      'backlog, concurrency 10, 200 jobs, removed',
    ]);
    // Ten handlers at a time can be no faster.
    const perSecond = figures.of('sqlite', 'backlog, concurrency 10, handler 10 ms, removed');
    expect(perSecond).toBeGreaterThan(0);
    expect(perSecond).toBeLessThan(1100);
  },
  PATIENCE_MS,
);

test(
  'bench --cost prints the jobs a second for each handler time and concurrency',
  async () => {
    const { text } = await bench(['--tiny', '--cost', '--store', 'sqlite', '--handler-ms', '1,10', '--concurrency', '1,10']);
    expect(text).toMatch(/\| handler \| without a queue \| SQLite \|/);
    for (const line of ['1 ms | 1,000 / 10,000', '10 ms | 100 / 1,000']) expect(text).toContain(`| ${line} | `);
    expect(text).not.toContain('–');
  },
  PATIENCE_MS,
);

test('bench --from takes ratios within a round, and compares their median with the target', async () => {
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
