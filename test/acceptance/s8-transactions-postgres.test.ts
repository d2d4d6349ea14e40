// S8-8 on PostgreSQL: a worker process is killed at random moments around `job.complete` in the transaction of its business row. In every
// snapshot of the database, a job has both its row and its completion, or neither. HOLDFAST_PAYMENT_KILLS says how many kills (300 unless
// said otherwise, 20 in the gate), HOLDFAST_SEED repeats the choice of moments.
import { openStore, type Store } from 'holdfast';
import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { FULL } from '../support/run/matrix.js';
import { seeded } from '../support/run/random.js';
import { seedOfTest } from '../support/run/seed.js';
import { freshDatabase } from '../support/servers/shared.js';
import { paced } from '../support/wait/pace.js';
import { sleep, until } from '../support/wait/until.js';

const KILLS = Number(process.env['HOLDFAST_PAYMENT_KILLS'] ?? (FULL ? 300 : 20));
const LANES = 3;
/** Kills come at most this long after the first row of a process. */
const LATEST_MS = 30;
const JOBS_PER_KILL = 12;
const OPTIONS = {
  concurrency: 3,
  lockDuration: paced(10_000),
  stalledInterval: 200,
  crashGraceMs: 100,
  maxStalledCount: 1000,
  useDedicatedLockThread: false,
};

interface Scene {
  url: string;
  store: Store;
  admin: Client;
  /** How many jobs were added. */
  added: number;
}

async function newScene(): Promise<Scene> {
  const { url, drop } = await freshDatabase();
  onTestFinished(drop);
  const store = await openStore(url);
  onTestFinished(() => store.close());
  const admin = new Client({ connectionString: url });
  await admin.connect();
  onTestFinished(() => admin.end());
  await admin.query('CREATE TABLE payments (job text NOT NULL)');
  return { url, store, admin, added: 0 };
}

function payer({ url: connection }: Scene, plan: { apart?: boolean; waits?: boolean; options?: object } = {}): WorkerProcess {
  const options = { ...OPTIONS, ...plan.options };
  return new WorkerProcess({ queue: 'q', connection, ...plan, options } as never, 'paying-worker.mjs');
}

async function add(scene: Scene, count: number): Promise<void> {
  const job = { name: 'pay', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
  scene.added += count;
  const jobs = Array.from({ length: count }, () => job);
  await scene.store.add('q', jobs, { caller: `added-${scene.added}`, seq: 1 });
}

/** Adds jobs until the process has written a row: other processes may take all of them before. */
async function begin(scene: Scene, victim: WorkerProcess): Promise<void> {
  const begun = victim.moment('inside').then(() => true);
  do await add(scene, JOBS_PER_KILL);
  while (!(await Promise.race([begun, sleep(500).then(() => false)])));
}

/** Jobs with a row and no completion, or a completion and no row, or more than one row. One statement sees one snapshot. */
async function torn({ admin }: Scene): Promise<unknown[]> {
  const { rows } = await admin.query(
    `SELECT coalesce(p.job, j.id) AS id, p.rows, j.state FROM (SELECT job, count(*)::int AS rows FROM payments GROUP BY job) p
     FULL JOIN (SELECT id, state FROM holdfast.jobs WHERE state = 4) j ON j.id = p.job
     WHERE p.rows IS DISTINCT FROM 1 OR j.state IS NULL`,
  );
  return rows;
}

/** Kills processes one after the other, each at a random moment after its first row. */
async function kill(scene: Scene, kills: number, random: () => number, apart: boolean): Promise<void> {
  let next = payer(scene, { apart });
  for (let death = 1; death <= kills; death += 1) {
    const victim = next;
    await begin(scene, victim);
    if (death < kills) next = payer(scene, { apart });
    await sleep(random() * LATEST_MS);
    victim.kill('SIGKILL');
    expect((await victim.exited).signal).toBe('SIGKILL');
  }
}

async function drain(scene: Scene, apart = false): Promise<void> {
  const worker = payer(scene, { apart });
  await until(
    'all jobs to end',
    async () => {
      const { counts } = await scene.store.status('q');
      return counts.waiting + counts.active === 0;
    },
    paced(60_000),
  );
  worker.kill('SIGTERM');
}

test(`S8-8 ${KILLS} kills around job.complete: each job has its row and its completion, both or neither`, {
  timeout: paced(900_000),
}, async () => {
  const scene = await newScene();
  const seed = seedOfTest();
  const wrong: unknown[] = [];
  let looks = 0;
  let over = false;
  const watching = (async () => {
    for (; !over; looks += 1) {
      wrong.push(...(await torn(scene)));
      await sleep(5);
    }
  })();
  const share = Math.ceil(KILLS / LANES);
  await Promise.all(
    Array.from({ length: LANES }, (_, lane) => kill(scene, Math.min(share, KILLS - lane * share), seeded(seed + lane), false)),
  );
  await drain(scene);
  over = true;
  await watching;
  const { counts } = await scene.store.status('q');
  const { rows } = await scene.admin.query<{ paid: number; stalls: number }>(
    `SELECT (SELECT count(*) FROM payments)::int AS paid, (SELECT count(*) FROM holdfast.jobs WHERE stalled_counter > 0)::int AS stalls`,
  );
  console.log(`${KILLS} kills, ${counts.completed} jobs, ${rows[0]?.stalls} of them lost by a killed owner, ${looks} snapshots`);
  expect(wrong).toEqual([]);
  expect(await torn(scene)).toEqual([]);
  expect([counts.completed, rows[0]?.paid]).toEqual([scene.added, scene.added]);
  // Kills came while jobs ran.
  expect(rows[0]?.stalls).toBeGreaterThan(KILLS / 4);
});

test('S8-8 (N) without the transaction, some jobs have a row and no completion when their process dies, and are paid twice', {
  timeout: paced(300_000),
}, async () => {
  const scene = await newScene();
  const random = seeded(seedOfTest());
  const twice = async (): Promise<number> =>
    (await scene.admin.query('SELECT job FROM payments GROUP BY job HAVING count(*) > 1')).rowCount ?? 0;
  for (let round = 0; round < 20 && (await twice()) === 0; round += 1) {
    await kill(scene, 5, random, true);
    await drain(scene, true);
  }
  expect(await twice()).toBeGreaterThan(0);
});

test('S8-8 the transaction of an owner that was frozen until its lock was lost rolls back', {
  timeout: paced(60_000),
}, async () => {
  const scene = await newScene();
  const options = { lockDuration: paced(1500), lockRenewTime: paced(300) };
  const frozen = payer(scene, { waits: true, options });
  await add(scene, 1);
  await frozen.moment('inside');
  await frozen.freeze();
  const heir = payer(scene, { options });
  await until(
    'another worker to complete the job',
    async () => (await scene.store.status('q')).counts.completed === 1,
    paced(20_000),
  );
  frozen.thaw();
  frozen.send('go');
  expect(await frozen.moment('refused')).toMatchObject({ code: 'LOCK_LOST' });
  expect(await torn(scene)).toEqual([]);
  heir.kill('SIGTERM');
});
