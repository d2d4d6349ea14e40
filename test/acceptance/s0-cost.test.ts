// S0-17: the benchmark measures what one worker and twenty workers of a process cost.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test.each([
  ['memory', ['memory']],
  ['sqlite', ['memory', 'connections']],
])('S0-17 %s: the benchmark prints what 1 and 20 workers cost', (store, figures) => {
  const bench = fileURLToPath(new URL('../../bench/bench.mjs', import.meta.url));
  const { stdout, status, stderr } = spawnSync(process.execPath, [bench, '--quick', '--store', store], { encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  const lines = stdout.split('\n');
  for (const figure of figures) {
    const [one, twenty] = ['1 worker ', '20 workers '].map((workers) => {
      const line = lines.find((text) => text.trim().startsWith(figure) && text.includes(`with ${workers}`));
      return Number(/with \d+ workers? +([\d.,]+)/.exec(line ?? '')?.[1]?.replace(',', ''));
    });
    expect(one, `${figure} with 1 worker in:\n${stdout}`).toBeGreaterThan(0);
    expect(twenty, `${figure} with 20 workers in:\n${stdout}`).toBeGreaterThan(0);
    if (figure === 'connections') expect(twenty, 'workers of a process share its connections').toBe(one);
  }
});
