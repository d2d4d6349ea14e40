// S8-8: a handler completes its job in a transaction of its own, together with its business rows. Whenever its process is killed, a job has
// both or neither. HOLDFAST_KILLS says how many kills per store (300 unless said otherwise, 20 in the gate), HOLDFAST_SEED repeats the choice of moments.
import { describe, expect, onTestFinished, test } from 'vitest';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { freeze } from '../support/processes/freeze.js';
import { FULL, inThisRun } from '../support/run/matrix.js';
import { seeded } from '../support/run/random.js';
import { seedOfTest } from '../support/run/seed.js';
import { newScene, type Engine, type Scene } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { sleep, until } from '../support/wait/until.js';
import { LEDGERS, type Ledger } from './fixtures/ledgers.mjs';

const ENGINES = inThisRun(Object.keys(LEDGERS) as Engine[]);
const KILLS = Number(process.env['HOLDFAST_KILLS'] ?? (FULL ? 300 : 20));
const LANES = 3;
const POINTS = ['booked', 'completed', 'committed'] as const;
/** A victim dies of itself at a job up to this one, or is killed from outside within this time. */
const MOST_JOBS = 25;
const LIFE_MS = paced(300);
const OPTIONS = { concurrency: 4, lockDuration: paced(15_000), stalledInterval: 300, crashGraceMs: 200, maxStalledCount: 1000 };

interface Books extends Scene {
  engine: Engine;
  ledger: Ledger;
}

async function start(engine: Engine): Promise<Books> {
  const scene = await newScene(engine);
  const ledger = (LEDGERS[engine] as (url: string) => Ledger)(scene.url);
  onTestFinished(() => ledger.close());
  await ledger.create();
  return { ...scene, engine, ledger };
}

function bookkeeper({ url: connection, engine }: Books, more: object = {}): WorkerProcess {
  return new WorkerProcess({ queue: 'work', connection, engine, options: OPTIONS, ...more } as never, 'ledger-worker.mjs');
}

/** Kills one process after the other, in several lanes at once, while there are always jobs. */
async function kill(books: Books, kills: number, random: () => number, apart: boolean): Promise<{ inside: number }> {
  const { queue } = books;
  const points = apart ? (['committed'] as const) : POINTS;
  let [dead, inside, over] = [0, 0, false];
  const feeding = (async () => {
    for (; !over; await sleep(20))
      if ((await queue.getWaitingCount()) < 200)
        await queue.addBulk(Array.from({ length: 200 }, () => ({ name: 'book', data: {} })));
  })();
  const lane = async (): Promise<void> => {
    while (dead < kills) {
      dead += 1;
      const dies = { job: 1 + Math.floor(random() * MOST_JOBS), point: points[Math.floor(random() * points.length)] };
      const isInside = random() < 0.7;
      const victim = bookkeeper(books, { apart, ...(isInside && { dies }) });
      if (!isInside) {
        await victim.moment('ready');
        await sleep(random() * LIFE_MS);
        victim.kill('SIGKILL');
      }
      expect(await victim.exited, String(victim)).toEqual({ code: null, signal: 'SIGKILL' });
      if (isInside) inside += 1;
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  over = true;
  await feeding;
  return { inside };
}

interface Audit {
  completed: number;
  /** Jobs with rows that are not completed, jobs that are completed without a row, and jobs with several rows. */
  alone: { booked: number; completed: number; twice: number };
}

async function audit({ queue, ledger }: Books): Promise<Audit> {
  const rows = new Map<string, number>();
  for (const { job } of await ledger.rows()) rows.set(job, (rows.get(job) ?? 0) + 1);
  const done = new Set((await queue.getCompleted(0, -1)).map(({ id }) => id));
  const alone = {
    booked: [...rows.keys()].filter((id) => !done.has(id)).length,
    completed: [...done].filter((id) => !rows.has(id)).length,
    twice: [...rows.values()].filter((count) => count > 1).length,
  };
  return { completed: done.size, alone };
}

const BALANCED = { booked: 0, completed: 0, twice: 0 };

describe.each(ENGINES)('S8-8 on %s: a handler books a job and completes it', (engine) => {
  test(`in one transaction, ${KILLS} times killed: every job has both or neither, and in the end exactly one of each`, {
    timeout: paced(300_000),
  }, async () => {
    const books = await start(engine);
    const seed = seedOfTest();
    const begun = performance.now();
    const { inside } = await kill(books, KILLS, seeded(seed), false);
    const { completed, alone } = await audit(books);
    console.log(
      `s8-8 on ${engine}: ${KILLS} kills (${inside} at a chosen point) in ${Math.round((performance.now() - begun) / 1000)} s, ` +
        `${completed} jobs completed, seed ${seed}`,
    );
    expect(alone).toEqual(BALANCED);
    expect(completed).toBeGreaterThan(KILLS);
    const last = bookkeeper(books);
    await until('all jobs to be done', async () => (await books.queue.getJobCountByTypes('waiting', 'active')) === 0, 120_000);
    last.send('close');
    await last.exited;
    const end = await audit(books);
    expect(end.alone).toEqual(BALANCED);
    expect(await books.ledger.rows()).toHaveLength(end.completed);
    expect(last.all('error')).toEqual([]);
  });

  test('(N) the completion comes after the transaction: some jobs are booked and not completed, or booked twice', async () => {
    const books = await start(engine);
    await kill(books, 12, seeded(seedOfTest()), true);
    const { alone } = await audit(books);
    expect(alone.booked + alone.twice).toBeGreaterThan(0);
  });

  test('after it was frozen for longer than its lock: its transaction rolls back, and the next owner has booked the job', async () => {
    const books = await start(engine);
    const options = { ...OPTIONS, lockDuration: paced(1500), lockRenewTime: paced(300) };
    const zombie = bookkeeper(books, { options, waits: true, by: 'zombie' });
    await zombie.moment('ready');
    const { id } = await books.queue.add('book', {});
    await zombie.moment('started');
    await freeze(zombie, books);
    bookkeeper(books, { options, by: 'heir' });
    await until('the heir to complete the job', async () => (await books.queue.getJobState(id)) === 'completed', paced(20_000));
    zombie.thaw();
    zombie.send('go');
    expect((await zombie.moment('refused'))['code']).toBe('LOCK_LOST');
    expect(await books.ledger.rows()).toEqual([{ job: id, by: 'heir' }]);
    expect((await books.queue.getJob(id))?.returnvalue).toBe(1);
  });
});
