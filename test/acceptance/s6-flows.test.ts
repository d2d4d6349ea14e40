// S6-3, S6-4, S6-9 and S7-4: flows and dead letters between processes that are killed, with many children, and in a transaction.
import { FlowProducer, Queue, Worker } from 'holdfast';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { ENGINES, type Engine, newScene, type Scene, SHARED_ENGINES } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { stopwatch } from '../support/wait/stopwatch.js';
import { until } from '../support/wait/until.js';

const FLOWS = 12;
const CHILDREN = 6;
const KILLS = 5;
const OPTIONS = {
  concurrency: 4,
  lockDuration: paced(4000),
  lockRenewTime: paced(500),
  stalledInterval: 200,
  crashGraceMs: 200,
  maxStalledCount: 1000,
  drainDelay: 1,
};

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

/** How often each job of a queue had this event. */
async function countEvents({ store }: Scene, queue: string, wanted: string, prev?: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let after = 0; ; ) {
    const { events } = await store.events(queue, after, 1000);
    if (events.length === 0) return counts;
    for (const event of events) {
      after = event.id;
      if (event.name !== wanted || (prev !== undefined && event['prev'] !== prev)) continue;
      counts.set(event.jobId ?? '', (counts.get(event.jobId ?? '') ?? 0) + 1);
    }
  }
}

describe.each(oneInThisRun(SHARED_ENGINES))('S6 flows between processes on %s', (engine: Engine) => {
  test('S6-3 every parent ends once, after all its children, while workers are killed', { timeout: paced(120_000) }, async () => {
    const scene = await newScene(engine);
    const { url: connection } = scene;
    const plan = { queue: 'f', connection, options: OPTIONS };
    const member = async (): Promise<WorkerProcess> => {
      const made = new WorkerProcess(plan, 'family-worker.mjs');
      await made.moment('ready');
      return made;
    };
    const crew = [await member(), await member()];
    const flow = kept(new FlowProducer({ connection }));
    const parents = kept(new Queue('f-parents', { connection }));
    await flow.addBulk(
      Array.from({ length: FLOWS }, (_, f) => ({
        name: 'parent',
        queueName: 'f-parents',
        data: { children: CHILDREN, ms: 5 },
        opts: { jobId: `flow-${f}` },
        children: Array.from({ length: CHILDREN }, (__, n) => ({ name: 'kid', queueName: 'f-kids', data: { n, ms: 10 + n } })),
      })),
    );
    for (let kill = 0; kill < KILLS; kill += 1) {
      const victim = crew.shift() as WorkerProcess;
      crew.push(await member());
      victim.kill('SIGKILL');
      await victim.exited;
    }
    await until('all parents to complete', async () => (await parents.getCompletedCount()) === FLOWS, paced(60_000));
    expect(await parents.getJobCounts('waiting', 'waiting-children', 'failed', 'active')).toEqual({
      waiting: 0,
      'waiting-children': 0,
      failed: 0,
      active: 0,
    });
    const done = await parents.getCompleted();
    expect(done.map(({ returnvalue }) => returnvalue as number)).toEqual(Array.from({ length: FLOWS }, () => 15));
    const completions = await countEvents(scene, 'f-parents', 'completed');
    expect([...completions.values()]).toEqual(Array.from({ length: FLOWS }, () => 1));
    const releases = await countEvents(scene, 'f-parents', 'waiting', 'waiting-children');
    expect([...releases.values()]).toEqual(Array.from({ length: FLOWS }, () => 1));
  });

  test('S7-4 a job whose worker is killed leaves one letter, and redrive sends it back', async () => {
    const scene = await newScene(engine);
    const { url: connection, queue } = scene;
    const letters = kept(new Queue('letters', { connection }));
    await queue.add('hold', {}, { jobId: 'a', deadLetter: 'letters', removeOnFail: true });
    const mortal = new WorkerProcess({ queue: 'work', connection, options: { ...OPTIONS, maxStalledCount: 0 } });
    await mortal.moment('started');
    mortal.kill('SIGKILL');
    kept(new Worker('work', async () => 'done', { connection, ...OPTIONS }));
    await until('the letter', async () => (await letters.getWaitingCount()) === 1);
    expect(await queue.getJobState('a')).toBe('unknown');
    expect(await letters.redrive()).toBe(1);
    await until('the job to complete', async () => (await queue.getJobState('a')) === 'completed');
    expect(await letters.getJobCountByTypes()).toBe(0);
    expect([...(await countEvents(scene, 'letters', 'added')).values()]).toEqual([1]);
  });
});

describe.each(ENGINES)('S6 large flows on %s', (engine: Engine) => {
  test('S6-4 a parent starts soon after the last of 10,000 children', { timeout: paced(120_000) }, async () => {
    const scene = await newScene(engine);
    const { connection } = scene;
    const flow = kept(new FlowProducer({ connection }));
    const parents = kept(new Queue('parents', { connection }));
    const children = Array.from({ length: 10_000 }, (_, n) => ({
      name: 'kid',
      queueName: 'kids',
      data: n,
      opts: { removeOnComplete: true },
    }));
    await flow.add({ name: 'parent', queueName: 'parents', opts: { jobId: 'parent' }, children });
    let sinceLast = stopwatch();
    let startedAfter = Number.POSITIVE_INFINITY;
    const kids = kept(new Worker('kids', async () => 1, { connection, concurrency: 100 }));
    kids.on('completed', () => {
      sinceLast = stopwatch();
    });
    kept(
      new Worker(
        'parents',
        async () => {
          startedAfter = sinceLast();
        },
        { connection },
      ),
    );
    await until('the parent to complete', async () => (await parents.getCompletedCount()) === 1, paced(90_000));
    expect(startedAfter).toBeLessThan(paced(1000));
    const [parent] = await parents.getCompleted();
    expect(await parent?.getDependenciesCount()).toMatchObject({ processed: 10_000, unprocessed: 0 });
  });

  test('S6-4 1,000 children that end at once on 20 workers release their parent once', { timeout: paced(60_000) }, async () => {
    const scene = await newScene(engine);
    const { connection } = scene;
    const flow = kept(new FlowProducer({ connection }));
    const parents = kept(new Queue('parents', { connection }));
    const children = Array.from({ length: 1000 }, (_, n) => ({ name: 'kid', queueName: 'kids', data: n }));
    await flow.add({ name: 'parent', queueName: 'parents', opts: { jobId: 'parent' }, children });
    const workers = Array.from({ length: 20 }, () => kept(new Worker('kids', async () => 1, { connection, concurrency: 10 })));
    await Promise.all(workers.map((worker) => worker.waitUntilReady()));
    await until('the parent to be released', async () => (await parents.getWaitingCount()) === 1, paced(50_000));
    expect([...(await countEvents(scene, 'parents', 'waiting', 'waiting-children')).values()]).toEqual([1]);
    const [parent] = await parents.getWaiting();
    expect(await parent?.getDependenciesCount()).toMatchObject({ processed: 1000, unprocessed: 0 });
  });
});

describe('S6 flows in a transaction on postgres', () => {
  test('S6-9 a whole flow appears with the commit, or never', async () => {
    const { url: connection } = await newScene('postgres');
    const client = new Client({ connectionString: connection });
    await client.connect();
    onTestFinished(() => client.end());
    const flow = kept(new FlowProducer({ connection }));
    const [parents, kids] = ['parents', 'kids'].map((name) => kept(new Queue(name, { connection }))) as [Queue, Queue];
    const tree = { name: 'parent', queueName: 'parents', children: [{ name: 'kid', queueName: 'kids' }] };
    await client.query('BEGIN');
    await flow.add(tree, { transaction: client });
    expect([await parents.count(), await kids.count()]).toEqual([0, 0]);
    await client.query('ROLLBACK');
    expect([await parents.count(), await kids.count()]).toEqual([0, 0]);
    await client.query('BEGIN');
    const { job } = await flow.add(tree, { transaction: client });
    await client.query('COMMIT');
    expect([await parents.getWaitingChildrenCount(), await kids.getWaitingCount()]).toEqual([1, 1]);
    kept(new Worker('kids', async () => 'value', { connection }));
    await until('the parent to wait', async () => (await job.getState()) === 'waiting');
  });
});
