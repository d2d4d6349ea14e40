import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { soak } from './program.js';
import { paced } from '../support/wait/pace.js';

/** A minute, and on a busy machine as much again for starting, for the jobs that are left and for leaving. */
const LIMIT = { timeout: paced(180_000) };

interface Soaked {
  samples: { ms: number; values: Record<string, number> }[];
  verdicts: Record<string, { flat?: boolean }>;
  violations: unknown[];
}

/** What --leak leaks, as far as Redis shows it; on another store, handles and connections would be others. */
const LEAKED = ['worker heap', 'worker handles', 'worker descriptors', 'connections', 'store'];
const SOUND = ['worker threads', 'producer threads', 'producer descriptors', 'producer handles'];

test('a soak of a minute breaks no promise, and finds what is leaked on purpose, and only that', LIMIT, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-soak-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const json = join(folder, 'soak.json');
  const flags = ['--minutes', '1', '--pace-ms', '12000', '--seed', '5', '--leak', '--json', json];
  const { code, output } = await soak('--store', 'redis', ...flags);
  expect(existsSync(json), output).toBe(true);
  const { samples, verdicts, violations } = JSON.parse(readFileSync(json, 'utf8')) as Soaked;
  expect(output).toContain('No violation.');
  expect(violations).toEqual([]);
  expect(samples.length).toBeGreaterThan(15);
  for (const name of LEAKED) expect(verdicts[name], `${name}\n${output}`).toMatchObject({ flat: false });
  for (const name of SOUND) expect(verdicts[name], `${name}\n${output}`).toMatchObject({ flat: true });
  expect(output).toMatch(/^worker heap +[▁▂▃▄▅▆▇█ ]{15} {2}NOT FLAT/m);
  expect(code).toBe(1);
});

test('a flag that is not known, or a store, is refused', async () => {
  expect(await soak('--store', 'mysql')).toMatchObject({ code: 1, output: expect.stringContaining('--store mysql') as string });
  expect(await soak('--failover')).toMatchObject({ code: 1, output: expect.stringContaining('failover') as string });
});
