// Reading the event log on Redis, where one entry holds all events of a call.
import { expect, test } from 'vitest';
import { newJob, newSession, openWithClient } from './support.js';

test('a page of events on Redis reads the entries that it needs, and not all that follow', async () => {
  const { store, client } = await openWithClient();
  for (let seq = 1; seq <= 5; seq += 1) {
    const jobs = Array.from({ length: 400 }, () => newJob());
    await store.add('q', jobs, { caller: 'p', seq });
  }
  const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await client.info('stats'))?.[1]);
  const cost = async (work: () => Promise<unknown>): Promise<number> => {
    const before = await sent();
    await work();
    return (await sent()) - before;
  };
  const whole = await cost(() => store.events('q', 0, 10_000));
  let read = 0;
  const inPages = await cost(async () => {
    for (let after = 0; after < 4000; ) {
      const { events, last } = await store.events('q', after, 400);
      read += events.length;
      after = last;
    }
  });
  expect(read).toBe(4000);
  // Each entry has two pages.
  expect(inPages).toBeLessThan(whole * 3);
});

test('a reader of events on Redis gets past a number that no event has', async () => {
  const { store } = await openWithClient();
  await store.openSession(newSession());
  await store.add('q', [newJob(), newJob()], { caller: 'p', seq: 1 });
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 1 });
  const outcomes = jobs.map(({ id, token }) => ({
    kind: 'failed' as const,
    early: true,
    jobId: id,
    token,
    reason: 'no',
    stacktrace: '[]',
    keep: {},
  }));
  await store.settle('q', outcomes, { caller: 's', seq: 2 });
  const first = await store.events('q', 0, 100);
  expect(first.events.at(-1)).toMatchObject({ name: 'failed' });
  expect((await store.events('q', first.events.at(-1)?.id, 100)).events).toEqual([]);
});
