// Claims of two sessions that overlap under a cap. Both have finished counting what is active, or are about to count, before either commits.
import { expect, test } from 'vitest';
import { completed, newClient, newDatabase, newJobs, newSession, openStore } from './support.js';
import { paced } from '../../support/wait/pace.js';

const CAP = 20;
/** Sessions with one slot: what they leave of their shares of two is there for each of the two large sessions. */
const SMALL = 8;

test('two claims at once do not both take what small sessions leave of the cap', { timeout: paced(30_000) }, async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.add('q', newJobs(3 * CAP), { caller: 'p', seq: 1 });
  await store.configure('q', { cap: { maxActive: CAP } });
  for (const id of ['one', 'two']) await store.openSession(newSession({ id, slots: 100 }));
  for (let n = 0; n < SMALL; n += 1) await store.openSession(newSession({ id: `small-${n}`, slots: 1 }));

  // The first claim of a queue after a start of the server locks the queue's row for another reason.
  const { jobs } = await store.claim('q', { session: 'one', seq: 1, count: 1 });
  await store.settle('q', jobs.map(completed), { caller: 'one', seq: 2 });

  // A claim writes to the journal after everything else. While nothing can be written there, it can count and take, and not commit.
  const [blocker, admin] = [await newClient(url), await newClient(url)];
  await blocker.query('BEGIN; LOCK TABLE holdfast.journal IN SHARE MODE');
  const claims = ['one', 'two'].map((session) => store.claim('q', { session, seq: 3, count: 3 * CAP }));
  const waiting = async (): Promise<number> => {
    const { rows } = await admin.query<{ n: number }>(`SELECT count(*)::int AS n FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%claim%'`);
    return rows[0]?.n ?? 0;
  };
  // The store waits 8 s for a lock before it gives up.
  await expect.poll(waiting, { timeout: 7_000, interval: 20 }).toBe(2);
  await blocker.query('COMMIT');

  const taken = (await Promise.all(claims)).map(({ jobs }) => jobs.length).sort((a, b) => a - b);
  expect(taken).toEqual([CAP / 10, CAP - CAP / 10 - SMALL]);
  for (let n = 0; n < SMALL; n += 1) {
    expect((await store.claim('q', { session: `small-${n}`, seq: 1, count: CAP })).jobs).toHaveLength(1);
  }
  expect((await store.status('q')).counts.active).toBe(CAP);
});
