// S2-11 in Bull's shape: workers that die, and locks that cannot be extended.
import { type Connection, openStore } from 'holdfast';
import type { Job } from 'holdfast/bull';
import { FaultyStore } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Engine, newScene, renewed, type Scene } from '../support/scenes/scene.js';
import { troubledThread } from '../support/faults/watched-store.js';
import { bullProcess, bullQueue, COMPAT_ENGINES, nextEvent } from '../support/scenes/compat-scene.js';
import { FaultProxy } from '../support/servers/proxy.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

const QUICK = { lockDuration: paced(1000), stalledInterval: 100, maxStalledCount: 1 };

describe.each(COMPAT_ENGINES)('S2-11 in Bull’s shape on %s', (engine) => {
  test('S2-11 a job whose worker is killed stalls once and runs again, and fails after a second kill', async () => {
    const scene = await newScene(engine);
    const queue = bullQueue(scene);
    const first = bullProcess(scene, { settings: QUICK });
    const job = await queue.add({ hold: true });
    await first.moment('started');
    const second = bullProcess(scene, { settings: QUICK });
    await second.moment('ready');
    first.kill('SIGKILL');
    await second.moment('started', (moment) => moment['jobId'] === job.id);
    expect(await second.moment('stalled')).toMatchObject({ jobId: job.id });
    const third = bullProcess(scene, { settings: QUICK });
    await third.moment('ready');
    second.kill('SIGKILL');
    expect(await third.moment('failed')).toMatchObject({ jobId: job.id, detail: 'job stalled more than allowable limit' });
    expect(second.all('stalled')).toHaveLength(1);
    // Over the limit, it is failed and nothing else.
    expect(third.all('stalled')).toHaveLength(0);
    expect(third.all('started')).toHaveLength(0);
    expect(await queue.getJob(job.id)).toMatchObject({ failedReason: 'job stalled more than allowable limit' });
    expect(await job.isFailed()).toBe(true);
  });

  test('S2-11 (N) a worker that lives and works for many lock durations stalls nothing', async () => {
    const scene = await newScene(engine);
    const queue = bullQueue(scene);
    const [one, two] = [bullProcess(scene, { settings: QUICK }), bullProcess(scene, { settings: QUICK })];
    await Promise.all([one.moment('ready'), two.moment('ready')]);
    const job = await queue.add({ hold: true });
    await until('it runs', async () => job.isActive());
    const lock = await queue.core.getLock(job.id);
    const renewals = async (): Promise<number> =>
      (await scene.store.sessions('work')).find(({ id }) => id === lock?.session)?.renewals ?? 0;
    const before = await renewals();
    await until('four more renewals', async () => (await renewals()) >= before + 4);
    for (const worker of [one, two]) worker.send('finish');
    await until('it ends', async () => job.isCompleted());
    expect([...one.all('stalled'), ...two.all('stalled')]).toEqual([]);
    expect([...one.all('started'), ...two.all('started')]).toHaveLength(1);
  });

  test.each([true, false])(
    'S2-11 lock-extension-failed for one error of the connection, which does not end renewal, and for a lost lock; renewed by the thread: %s',
    async (byThread) => {
      const scene = await newScene(engine);
      const { connection, fail, renews } = byThread ? await onThread(engine, scene) : await onLoop(scene);
      const settings = { lockDuration: paced(6000), lockRenewTime: paced(200), stalledInterval: 0 };
      const queue = bullQueue({ connection }, { settings });
      const errors: Error[] = [];
      queue.on('error', (error) => errors.push(error));
      const told: { job: Job; error: Error }[] = [];
      queue.on('lock-extension-failed', (job, error) => told.push({ job: job as Job, error }));
      const [gate, second] = [newGate(), newGate()];
      onTestFinished(() => {
        for (const each of [gate, second]) each.open();
      });
      let running: Job | undefined;
      void queue.process(async (job) => {
        running = job;
        await gate.opened;
        return 'done';
      });
      const completed = nextEvent(queue, 'completed');
      const active = nextEvent(queue, 'active');
      const job = await queue.add({});
      await active;
      await renews(1);

      const heal = fail();
      await until('the failed renewal is told', async () => told.length > 0);
      heal();
      expect(told[0]).toMatchObject({ job: { id: job.id }, error: { retryable: true } });
      expect(told[0]?.job).toBe(running);
      // Renewal goes on.
      await renews(3);
      gate.open();
      await completed;
      expect((await queue.getJob(job.id))?.returnvalue).toBe('done');
      expect(errors).toHaveLength(told.length);

      void queue.process('lose', () => second.opened);
      const runs = nextEvent(queue, 'active');
      const lost = await queue.add('lose', {});
      await runs;
      const failure = nextEvent(queue, 'lock-extension-failed');
      await queue.pause();
      await scene.store.change('work', [lost.id], { kind: 'revoke', reason: 'an operator' });
      expect(await failure).toMatchObject([
        { id: lost.id },
        { message: expect.stringContaining('could not renew lock for job') },
      ]);
      await renews(3);
      expect(told.filter(({ job: { id } }) => id === lost.id)).toHaveLength(1);
      second.open();
    },
  );
});

interface Renewal {
  connection: Connection;
  /** Renewals go wrong from now on, until the function that it returns is called. */
  fail(): () => void;
  /** Waits for so many more that go well, all of them made by the side that is meant. */
  renews(times: number): Promise<void>;
}

async function onThread(engine: Engine, scene: Scene): Promise<Renewal> {
  const { connection, renewals, threadRenews, strike, heal } = await troubledThread(engine, scene);
  return {
    connection,
    fail: () => {
      strike();
      return heal;
    },
    renews: async (times) => {
      await threadRenews();
      const before = renewals().length;
      const since = () => renewals().slice(before);
      await until(`${times} more renewals`, async () => since().filter(({ failed }) => !failed).length >= times);
      expect(since().filter(({ thread }) => !thread)).toEqual([]);
    },
  };
}

async function onLoop({ url }: Scene): Promise<Renewal> {
  const inner = await openStore(url);
  onTestFinished(() => inner.close());
  const store = new FaultyStore(inner);
  return {
    connection: store,
    fail: () => {
      const rule = store.on('renew', { fault: 'fail', times: 1 });
      return () => expect(rule.struck).toBe(1);
    },
    renews: async (times) => {
      for (let n = 0; n < times; n++) await store.answered('renew');
    },
  };
}

describe.each(['redis', 'postgres'] as const)('S2-11 in Bull’s shape on %s, over a network that fails', (engine) => {
  test('S2-11 lock-extension-failed while the server cannot be reached; then renewal goes on, and nothing was lost', async () => {
    const scene = await newScene(engine);
    const proxy = await FaultProxy.start({ port: Number(new URL(scene.url).port) });
    onTestFinished(() => proxy.close());
    const queue = bullQueue(scene);
    const settings = { lockDuration: 12_000, lockRenewTime: 200 };
    const worker = bullProcess({ ...scene, url: proxy.url(scene.url) }, { settings });
    await worker.moment('ready');
    const job = await queue.add({ hold: true });
    await worker.moment('started');
    // By its thread, which has a connection of its own.
    await renewed(scene.store, job.id, 2);
    proxy.swallow('both');
    expect(await worker.moment('lock-extension-failed')).toMatchObject({ jobId: job.id });
    proxy.heal();
    await renewed(scene.store, job.id, 2);
    worker.send('finish');
    await worker.moment('completed');
    expect(worker.all('started')).toHaveLength(1);
    expect(await queue.getJob(job.id)).toMatchObject({ attemptsMade: 1 });
  });
});
