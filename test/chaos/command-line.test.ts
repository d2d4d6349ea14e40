import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { chaos } from './program.js';

test.each([
  [['--store', 'mysql'], '--store mysql is not known'],
  [['--store', 'sqlite', '--failover'], '--failover needs --store redis'],
  [['--store', 'sqlite', '--peer', 'bullmq'], '--peer bullmq needs --store redis'],
  [['--store', 'redis-cluster', '--failover'], '--failover needs --store redis'],
  [['--store', 'redis', '--peer', 'kafka'], '--peer kafka is not known'],
  [['--store', 'redis', '--compare'], '--compare needs --peer'],
  [['--minutes', 'some'], '--minutes takes a number above 0'],
])('%j is refused with what to type instead', async (flags, message) => {
  expect(await chaos(...flags)).toMatchObject({ code: 1, output: expect.stringContaining(message) as string });
});

test.each([
  ['kept', [{ id: '1', key: 'k' }], 0, 'No violation.'],
  ['broken', [{ id: '2', key: 'k' }], 1, 'lost: job 2 (k) was acknowledged to producer-1.1 and is nowhere'],
])('a history is judged again: a promise was %s', async (_, jobs, code, said) => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-history-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const lines = [
    { at: 1, who: 'producer-1.1', event: 'added', jobs },
    { at: 2, who: 'conductor', event: 'accepted', id: '1', outcome: 'completed', key: 'k', fence: 5 },
  ];
  writeFileSync(join(folder, 'all.jsonl'), `${lines.map((line) => JSON.stringify(line)).join('\n')}\n{"cut by a ki`);
  const run = await chaos('--check', folder);
  expect(run.output).toContain(said);
  expect(run.code).toBe(code);
});
