// The SIGKILL test is as good as its checker: each promise is broken here once, and the checker must say so.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore, type Store } from 'holdfast';
import { expect, onTestFinished, test } from 'vitest';
import { audit, CompletionTail } from '../support/faults/ledger.js';
import { seeded } from '../support/run/random.js';
import { Lane } from '../support/processes/victims.js';
import { until } from '../support/wait/until.js';
import { paced } from '../support/wait/pace.js';

interface Line {
  event: string;
  [field: string]: unknown;
}

const HONEST: Line[] = [
  { event: 'adding', keys: ['k'] },
  { event: 'added', jobs: [{ id: '1', key: 'k' }] },
  { event: 'start', pid: 10, id: '1', key: 'k', fence: 5 },
  { event: 'end', pid: 10, id: '1', key: 'k', fence: 5 },
  { event: 'finished', pid: 10, id: '1', key: 'k', fence: 5 },
];
const COMPLETED = [{ id: '1', key: 'k', fence: 5 }];

async function memory(): Promise<Store> {
  const store = await openStore('memory:');
  onTestFinished(() => store.close());
  return store;
}

async function complaintsAbout(lines: Line[], completions = COMPLETED, store?: Store): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-ledger-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const diary = join(folder, 'diary');
  writeFileSync(
    diary,
    `${lines.map((line, index) => JSON.stringify({ at: index, pid: 1, ...line })).join('\n')}\n{"cut by the ki`,
  );
  const place = store ?? (await memory());
  const tail = new CompletionTail(place);
  tail.completions.push(...completions);
  return (await audit([diary], [], tail, place)).complaints;
}

test('the ledger has no complaints about a correct history', async () => {
  expect(await complaintsAbout(HONEST)).toEqual([]);
});

test.each<[complaint: string, lines: Line[], completions?: typeof COMPLETED]>([
  ['job 1 (k) was acknowledged and never completed', HONEST, []],
  ['job 1 was finished 2 times', HONEST, [...COMPLETED, ...COMPLETED]],
  ['k was added twice', HONEST, [...COMPLETED, { id: '2', key: 'k', fence: 6 }]],
  ['nobody added z', HONEST, [...COMPLETED, { id: '2', key: 'z', fence: 6 }]],
  ['two runs had the same fence', [...HONEST, { event: 'start', pid: 11, id: '2', key: 'z', fence: 5 }]],
  ['job 1: fence 4 came after 5', [...HONEST, { event: 'start', pid: 11, id: '1', key: 'k', fence: 4 }]],
  [
    'job 1: two runs at once, 5 and 6',
    [...HONEST.slice(0, 3), { event: 'start', pid: 11, id: '1', key: 'k', fence: 6 }, { event: 'ready', pid: 10 }],
  ],
  ['job 1: run 5 was accepted and not its last one', [...HONEST, { event: 'start', pid: 11, id: '1', key: 'k', fence: 6 }]],
  [
    'job 1: finish 7 was acknowledged and another stands',
    [...HONEST, { event: 'finished', pid: 11, id: '1', key: 'k', fence: 7 }],
  ],
])('the ledger complains: %s', async (complaint, lines, completions) => {
  expect(await complaintsAbout(lines, completions)).toContain(complaint);
});

test('the ledger complains about jobs and locks that are left in the store', async () => {
  const store = await memory();
  const job = { name: 'j', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
  await store.add('work', [job, job, { ...job, delayMs: 1000 }], { caller: 'p', seq: 1 });
  await store.openSession({
    queue: 'work',
    id: 's',
    owner: { host: 'h', pid: 1, name: 'n', instance: 'i' },
    durationMs: 60_000,
    maxStalls: 1,
    slots: 1,
  });
  await store.claim('work', { session: 's', seq: 1, count: 1 });
  expect(await complaintsAbout(HONEST, COMPLETED, store)).toEqual([
    '1 jobs are left waiting',
    '1 jobs are left delayed',
    '1 jobs are left active',
    'session s still holds 1 locks',
  ]);
});

test('(N) a producer that calls its jobs acknowledged before the store has done so is caught losing some', {
  timeout: paced(60_000),
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-ledger-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const connection = `sqlite:${join(folder, 'jobs.db')}`;
  const store = await openStore(connection);
  onTestFinished(() => store.close());
  const lane = new Lane({ name: 'liar', folder, connection, random: seeded(1), options: {}, lies: true });
  onTestFinished(() => lane.clear());
  const tail = new CompletionTail(store);
  const losses = async (): Promise<string[]> => {
    await lane.kill(lane.deaths.length + 4);
    await lane.drain(() =>
      until('everything to be done', async () => {
        const { counts } = await store.status('work');
        return counts.waiting + counts.prioritized + counts.delayed + counts.active === 0;
      }),
    );
    await tail.read();
    return (await audit(lane.diaries, lane.deaths, tail, store)).complaints.filter((complaint) =>
      complaint.endsWith('never completed'),
    );
  };
  await until('a loss to be found', async () => (await losses()).length > 0, 50_000);
});
