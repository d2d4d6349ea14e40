// A statement that its caller has given up ends on the server too, so that the repetition of the call does not meet its locks.
import { describe, expect, test } from 'vitest';
import { newClient, newDatabase, newJob, newJobs, newSession, openStore } from './support.js';
import { stopwatch } from '../../support/wait/stopwatch.js';
import { insist } from '../../support/wait/insist.js';

const LONG_S = 60;

describe('a PostgreSQL statement that timed out', () => {
  test('is cancelled on the server, and no other statement is', async () => {
    const url = await newDatabase();
    // Long enough to be seen at the server, and far less than the eight seconds after which the server itself would end it.
    const store = await openStore({ url, queryTimeoutMs: 2_000 });
    const other = await openStore({ url });
    await store.add('q', [newJob({ id: 'x' })], { caller: 'p', seq: 1 });
    const admin = await newClient(url);
    const waiting = async () =>
      (
        await admin.query(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'holdfast' AND wait_event_type = 'Lock'`,
        )
      ).rowCount;
    await admin.query('BEGIN; SELECT FROM holdfast.jobs FOR UPDATE');
    const changing = store.change('q', ['x'], { kind: 'priority', priority: 5, lifo: false }).catch((error: unknown) => error);
    await expect.poll(waiting).toBe(1);
    let over = false;
    const others = Array.from({ length: 5 }, async () => {
      while (!over) await other.status('q');
    });
    expect(await changing).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    await expect.poll(waiting, { timeout: 4_000 }).toBe(0);
    over = true;
    await Promise.all(others);
    await admin.query('COMMIT');
    expect((await store.jobs('q', ['x'])).jobs[0]?.priority).toBe(0);
  });

  test.each(['claim', 'claim by settling'])('does not block its own retry: %s', async (kind) => {
    const url = await newDatabase();
    const store = await openStore({ url, queryTimeoutMs: 1_000 });
    await store.openSession(newSession());
    await store.add('q', newJobs(3), { caller: 'p', seq: 1 });
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 1 });
    const admin = await newClient(url);
    // As on a machine that has too much to do: it writes, and takes its time.
    await admin.query(`CREATE TABLE slow (n int); INSERT INTO slow VALUES (1);
      CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN IF NEW.state = 3 AND EXISTS (SELECT FROM public.slow) THEN PERFORM pg_sleep(${LONG_S}); END IF; RETURN NEW; END';
      CREATE TRIGGER dawdle AFTER UPDATE ON holdfast.jobs FOR EACH ROW EXECUTE FUNCTION dawdle()`);
    const took = stopwatch();
    let failures = 0;
    const outcome = { kind: 'completed', jobId: jobs[0]?.id ?? '', token: jobs[0]?.token ?? '', value: '1', keep: {} } as const;
    const claim = { session: 's', seq: 2, count: 2 };
    const claimed = await insist(
      async () =>
        kind === 'claim' ? store.claim('q', claim) : (await store.settle('q', [outcome], { caller: 's', seq: 2 }, claim)).claimed,
      () => {
        failures += 1;
        if (failures === 1) void admin.query('TRUNCATE slow');
      },
    );
    expect(claimed?.jobs.map(({ id }) => id)).toEqual(['2', '3']);
    expect(failures).toBeGreaterThan(0);
    expect(took()).toBeLessThan((LONG_S * 1000) / 3);
  });
});
