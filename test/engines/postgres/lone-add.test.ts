// A lone job on the PostgreSQL store: who is told of it, how, and when. Its own process comes first; others hear of it with its commit.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { NewJob } from '../../../src/job/record.js';
import { ADVISORY } from '../../../src/store/postgres/driver/advisory.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { Server } from '../../../src/store/postgres/driver/server.js';
import { newClient, newDatabase, newJob, newJobs, newSession, openStore } from './support.js';
import { until } from '../../support/wait/until.js';

let seq = 0;

async function add(store: PostgresStore, count = 1): Promise<string[]> {
  seq += 1;
  const replies = await store.add('q', newJobs(count), { caller: 'p', seq });
  return replies.map(({ id }) => id);
}

/** The short statements that stores send from now on, by name; `:q` is told to those who wait for jobs, `;q` to others. */
function statements(): string[] {
  const names: string[] = [];
  const short = Server.prototype.short;
  const spy = vi.spyOn(Server.prototype, 'short').mockImplementation(function (this: Server, name, values, ...rest) {
    const [payload] = (values as { payloads?: string[] }).payloads ?? [];
    names.push(name === 'notify' ? `notify ${payload?.replace(/^\w+/, '')}` : name);
    return short.call(this, name, values, ...rest);
  });
  onTestFinished(() => spy.mockRestore());
  return names;
}

/** Two stores whose first add is behind them; `woken` counts how often a watcher of jobs there was called. */
async function scene() {
  const url = await newDatabase();
  const [here, there] = [await openStore({ url }), await openStore({ url })];
  await add(here);
  await here.change('q', { lists: ['waiting'], limit: 10 }, { kind: 'remove' });
  const woken = { jobs: 0, events: 0 };
  const what = ['jobs', 'events'] as const;
  const stops = what.map((change) => there.watch('q', () => void (woken[change] += 1), change));
  const admin = await newClient(url);
  const locks = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  await until('the listener is there', async () => (await admin.query(locks)).rowCount === 1);
  // Called for what may have been missed, by the first look and by the first connection; told of what came before.
  await sleep(300);
  woken.jobs = 0;
  woken.events = 0;
  onTestFinished(() => {
    for (const stop of stops) stop();
  });
  return { here, there, woken, admin, url };
}

describe('a single add on PostgreSQL', () => {
  test('notifies other processes with its commit, without another call', async () => {
    const { here, woken } = await scene();
    const names = statements();
    await add(here);
    await until('both watchers are called at once', () => woken.jobs === 1 && woken.events === 1, 900);
    expect(names).toEqual(['add_plain']);
  });

  test('does not wait for another notification, and is notified in a separate call', async () => {
    const { here, woken, admin } = await scene();
    const names = statements();
    await admin.query('BEGIN');
    await admin.query(`SELECT pg_advisory_xact_lock(${ADVISORY.telling}, 0)`);
    await add(here);
    await until('both watchers are called at once', () => woken.jobs === 1 && woken.events === 1, 900);
    expect(names).toEqual(['add_plain', 'notify :q']);
    await admin.query('ROLLBACK');
  });

  test('notifies nothing with notify: false', async () => {
    const url = await newDatabase();
    const store = await openStore({ url, notify: false });
    await add(store);
    const listener = await newClient(url);
    const heard: unknown[] = [];
    listener.on('notification', ({ payload }) => heard.push(payload));
    await listener.query(`LISTEN holdfast_${Buffer.from('holdfast').toString('hex')}`);
    await add(store);
    await listener.query('SELECT 1');
    expect(heard).toEqual([]);
    const other = await openStore({ url });
    await add(other);
    await listener.query('SELECT 1');
    expect(heard).toHaveLength(1);
  });

  test('succeeds when the notification queue of the server is full', async () => {
    const { here, admin } = await scene();
    // As a queue of notifications that is full fails it: at its commit, when the statement is no longer known.
    await admin.query(`CREATE FUNCTION holdfast.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF TG_NAME = 'mark' THEN PERFORM set_config('test.tells', (current_query() LIKE 'WITH caller%')::text, true); RETURN NULL; END IF;
        IF current_setting('test.tells') = 'true' THEN RAISE EXCEPTION 'too many notifications' USING ERRCODE = '54000'; END IF;
        RETURN NULL;
      END $$;
      CREATE TRIGGER mark AFTER INSERT ON holdfast.journal FOR EACH ROW EXECUTE FUNCTION holdfast.refuse();
      CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON holdfast.journal DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        EXECUTE FUNCTION holdfast.refuse()`);
    const ids = [...(await add(here)), ...(await add(here))];
    expect(new Set(ids).size).toBe(2);
    expect((await here.status('q')).counts).toMatchObject({ waiting: 2 });
  });

  test('is applied to the counts later, after another add', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    for (let n = 0; n < 500; n += 1) await add(store);
    const admin = await newClient(url);
    const { rows } = await admin.query<{ n: number }>('SELECT count(*)::int AS n FROM holdfast.journal');
    expect(rows[0]?.n).toBeLessThan(450);
    expect((await store.status('q')).counts).toMatchObject({ waiting: 500 });
    const { events } = await store.events('q', 0, 10_000);
    expect(events.map(({ name }) => name)).toEqual(Array(500).fill(['added', 'waiting']).flat());
  });
});

describe('a PostgreSQL job that a worker of the same process takes', () => {
  /** A worker that waits for jobs where they are added, and has just found none. */
  async function waiting({ here }: { here: PostgresStore }): Promise<(count: number) => Promise<string[]>> {
    onTestFinished(here.watch('q', () => undefined, 'jobs'));
    await here.openSession(newSession());
    let last = 0;
    const claim = async (count: number): Promise<string[]> => {
      last += 1;
      return (await here.claim('q', { session: 's', seq: last, count })).jobs.map(({ id }) => id);
    };
    expect(await claim(1)).toEqual([]);
    // What opening a session told.
    await sleep(100);
    return claim;
  }

  test('is not announced as claimable to other processes', async () => {
    const stage = await scene();
    const claim = await waiting(stage);
    const names = statements();
    // It has a moment for that, and may be too late on a machine that is busy.
    for (let round = 0; names[2] !== 'notify ;q'; round += 1) {
      expect(round).toBeLessThan(20);
      await claim(1);
      await sleep(100);
      names.length = 0;
      const ids = await add(stage.here);
      expect(await claim(1)).toEqual(ids);
      await until('three statements', () => names.length === 3);
    }
    expect(names).toEqual(['add_plain', 'claim_plain', 'notify ;q']);
  });

  test('is announced to other processes when that worker does not claim', async () => {
    const stage = await scene();
    await waiting(stage);
    const names = statements();
    await add(stage.here);
    await until('two statements', () => names.length === 2);
    expect(names).toEqual(['add_plain', 'notify :q']);
    await sleep(100);
    // It is not waited for again.
    await add(stage.here);
    expect(names).toEqual(['add_plain', 'notify :q', 'add_plain']);
    await sleep(100);
    expect(names).toEqual(['add_plain', 'notify :q', 'add_plain']);
  });

  test.each<[string, () => NewJob[], number]>([
    ['there are more', () => newJobs(2), 1],
    ['it falls due later', () => [newJob({ delayMs: 60_000 })], 0],
  ])('is announced to other processes when %s', async (_, jobs, taken) => {
    const stage = await scene();
    const claim = await waiting(stage);
    const names = statements();
    seq += 1;
    await stage.here.add('q', jobs(), { caller: 'p', seq });
    expect(await claim(1)).toHaveLength(taken);
    await until('the notification', () => names.includes('notify :q'));
  });
});
