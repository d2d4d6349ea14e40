import { describe, expect, it } from 'vitest';
import { newFile, newJob, newSession, openStore, StoreProcess } from './support.js';

const BATCH = 100;

describe('a SQLite file that several processes share', () => {
  it('gives each of two busy processes at least a third, and lets renewals through', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    for (let seq = 1; seq <= 60; seq += 1) {
      await store.add(
        'q',
        Array.from({ length: 1_000 }, () => newJob()),
        { caller: 'p', seq },
      );
    }
    await store.openSession(newSession({ queue: 'k', id: 'kept' }));
    const racers = await Promise.all(
      ['a', 'b'].map(async (session) => {
        const racer = await StoreProcess.start(file);
        await racer.call('open');
        await racer.call('openSession', newSession({ id: session }));
        return { racer, session };
      }),
    );
    let racing = true;
    const done = racers.map(() => 0);
    let total = 0;
    const round = async ({ racer, session }: (typeof racers)[number], index: number): Promise<void> => {
      const jobs = await racer.call<number>('race', { queue: 'q', session, batch: BATCH, ms: 200 });
      done[index] = (done[index] ?? 0) + jobs;
      total += jobs;
    };
    // A busy machine lets each of them run now and then. A share of few batches says nothing about the file. Short rounds, so that a fast
    // machine does not run out of jobs.
    let rounds = 0;
    const race = (async () => {
      for (; rounds < 50 && total < 60 * BATCH; rounds += 1) await Promise.all(racers.map(round));
    })().finally(() => (racing = false));
    let renewals = 0;
    while (racing) {
      await store.renew([{ queue: 'k', id: 'kept', acked: 0 }]);
      renewals += 1;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await race;
    expect(total).toBeLessThan(60_000);
    expect(Math.min(...done) / total).toBeGreaterThan(1 / 3);
    // A round lasts 200 ms. Without fairness, a renewal takes longer than that.
    expect(renewals / rounds).toBeGreaterThan(1.5);
    for (const { racer } of racers) await racer.end();
  });

  it('wakes a watcher when another process changes its queue, and not for other queues', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const other = await StoreProcess.start(file);
    await other.call('open');
    let woken = 0;
    let first: (() => void) | undefined;
    const moment = new Promise<void>((resolve) => (first = resolve));
    const unwatch = store.watch('q', () => {
      woken += 1;
      first?.();
    });
    await other.call('add', 'elsewhere', [newJob()], { caller: 'p', seq: 1 });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(woken).toBe(0);
    await other.call('add', 'q', [newJob()], { caller: 'p', seq: 1 });
    await moment;
    unwatch();
  });

  it('wakes a watcher of the same process without waiting for a poll, and not for each call of a burst', async () => {
    const file = newFile();
    const [store, other] = [await openStore({ path: file }), await openStore({ path: file })];
    let woken = 0;
    const unwatch = store.watch('q', () => (woken += 1));
    await Promise.all(Array.from({ length: 20 }, (_, n) => other.add('q', [newJob()], { caller: `p${n}`, seq: 1 })));
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    // On a busy machine the burst takes a few commits.
    expect(woken).toBeGreaterThan(0);
    expect(woken).toBeLessThan(10);
    unwatch();
  });

  it('wakes no watcher for renewals', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.openSession(newSession());
    const other = await StoreProcess.start(file);
    await other.call('open');
    let woken = 0;
    const unwatch = store.watch('q', () => (woken += 1));
    for (let n = 0; n < 5; n += 1) await other.call('renew', [{ queue: 'q', id: 's', acked: 0 }]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(woken).toBe(0);
    unwatch();
  });

  it('keeps what was acknowledged to a killed process', async () => {
    const file = newFile();
    const producer = await StoreProcess.start(file);
    await producer.call('open');
    await producer.call('add', 'q', [newJob({ id: 'kept' })], { caller: 'p', seq: 1 });
    await producer.kill();
    const store = await openStore({ path: file });
    expect((await store.jobs('q', ['kept'])).jobs[0]?.state).toBe('waiting');
  });
});
