// SIGKILL at random moments, hundreds of times, of producers and of workers with their lock thread, between and inside transactions.
// HOLDFAST_KILLS says how many (300 unless said otherwise, 50 in the gate), HOLDFAST_SEED repeats the choice of moments (the moments themselves are the machine's).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { openStore } from 'holdfast';
import { expect, onTestFinished, test } from 'vitest';
import { audit, CompletionTail, type Ledger } from '../support/faults/ledger.js';
import { seeded } from '../support/run/random.js';
import { type Death, Lane } from '../support/processes/victims.js';
import { sleep, until } from '../support/wait/until.js';
import { FULL } from '../support/run/matrix.js';
import { paced } from '../support/wait/pace.js';
import { seedOfTest } from '../support/run/seed.js';

const KILLS = Number(process.env['HOLDFAST_KILLS'] ?? (FULL ? 300 : 50));
const LANES = 2;
const OPTIONS = { concurrency: 8, lockDuration: paced(15_000), stalledInterval: 500, crashGraceMs: 200, maxStalledCount: 1000 };

async function runLane(
  number: number,
  kills: number,
  folder: string,
  seed: number,
): Promise<{ ledger: Ledger; deaths: Death[] }> {
  const path = join(folder, `lane-${number}.db`);
  const connection = `sqlite:${path}`;
  const store = await openStore(connection);
  onTestFinished(() => store.close());
  const tail = new CompletionTail(store);
  const lane = new Lane({ name: `lane-${number}`, folder, connection, random: seeded(seed + number), options: OPTIONS });
  onTestFinished(() => lane.clear());
  let over = false;
  const reading = (async () => {
    for (; !over; await sleep(100)) await tail.read();
  })();
  await lane.kill(kills);
  await lane.drain(() =>
    until(
      'everything to be done',
      async () => {
        const { counts } = await store.status('work');
        return counts.waiting + counts.prioritized + counts.delayed + counts.active === 0;
      },
      30_000,
    ),
  );
  over = true;
  await reading;
  await tail.read();
  const ledger = await audit(lane.diaries, lane.deaths, tail, store);
  ledger.complaints.push(...lane.surprises, ...integrityOf(path));
  return { ledger, deaths: lane.deaths };
}

function integrityOf(path: string): string[] {
  const db = new Database(path, { readonly: true });
  const found = db.pragma('integrity_check', { simple: true });
  db.close();
  return found === 'ok' ? [] : [`integrity_check: ${String(found)}`];
}

test(`${KILLS} kills: nothing acknowledged is lost, doubled, in two states or stuck, and nothing is finished twice`, {
  timeout: paced(300_000),
}, async () => {
  const seed = seedOfTest();
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sigkill-'));
  onTestFinished(({ task }) => {
    // What a failure left is worth looking at.
    if (task.result?.state !== 'fail') rmSync(folder, { recursive: true, force: true });
  });
  const start = performance.now();
  const share = Math.ceil(KILLS / LANES);
  const lanes = await Promise.all(
    Array.from({ length: LANES }, (_, number) => runLane(number, Math.min(share, KILLS - number * share), folder, seed)),
  );
  const deaths = lanes.flatMap((lane) => lane.deaths);
  const sum = (value: (ledger: Ledger) => number): number => lanes.reduce((total, { ledger }) => total + value(ledger), 0);
  const recoveries = lanes.flatMap(({ ledger }) => ledger.recoveries).toSorted((a, b) => a - b);
  const at = (share: number): number => Math.round(recoveries[Math.floor((recoveries.length - 1) * share)] ?? 0);
  const count = (choose: (death: Death) => boolean): number => deaths.filter(choose).length;
  console.log(
    `sigkill: ${deaths.length} kills (${count(({ role }) => role === 'producer')} producers, ${count(({ role }) => role === 'worker')} workers, ` +
      `${count(({ inside }) => inside)} inside a transaction) in ${Math.round((performance.now() - start) / 1000)} s, seed ${seed}; ` +
      `${sum(({ acknowledged }) => acknowledged)} jobs acknowledged, ${sum(({ starts }) => starts)} runs, ${sum(({ finishes }) => finishes)} finishes heard of; ` +
      `${recoveries.length} runs recovered after ${at(0.5)} ms (half), ${at(0.95)} ms (95 %), ${at(1)} ms (all)`,
  );
  expect(lanes.flatMap(({ ledger }) => ledger.complaints)).toEqual([]);
  expect(deaths.length).toBeGreaterThanOrEqual(KILLS);
  // The test must have had something to lose.
  expect(sum(({ acknowledged }) => acknowledged)).toBeGreaterThan(KILLS);
  expect(recoveries.length).toBeGreaterThan(KILLS / 10);
  // By the crash hint, not by the end of the lock.
  expect(at(0.9)).toBeLessThan(paced(10_000));
});
