// Waiting for changes: by NOTIFY where there is a direct connection, by asking where there is none, and after every kind of break.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { killConnections, newClient, newDatabase, newJob, newProxy, newServer, openStore } from './support.js';
import { stopwatch } from '../../support/wait/stopwatch.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';
import { insist } from '../../support/wait/insist.js';

let seq = 0;

async function add(store: PostgresStore, queue = 'q'): Promise<void> {
  seq += 1;
  await insist(() => store.add(queue, [newJob()], { caller: 'p', seq }));
}

/** How long after an act of another store the watcher is called, in ms. */
async function wakeUp(store: PostgresStore, act: () => Promise<void>): Promise<number> {
  const took = stopwatch();
  let stop: (() => void) | undefined;
  const woken = new Promise<number>((resolve) => {
    stop = store.watch('q', () => resolve(took()));
  });
  await act();
  const acted = took();
  try {
    return (await woken) - acted;
  } finally {
    stop?.();
  }
}

/** The listener's connection is made in the background, and known by the lock that it holds. */
async function listening(url: string): Promise<void> {
  const client = await newClient(url);
  const locks = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  await until('the listener is there', async () => (await client.query(locks)).rowCount === 1);
}

describe('a watcher on PostgreSQL', () => {
  test('is woken by another store within milliseconds', async () => {
    const url = await newDatabase();
    const [here, there] = [await openStore({ url }), await openStore({ url })];
    const stop = here.watch('q', () => undefined);
    await listening(url);
    const times: number[] = [];
    for (let round = 0; round < 10; round += 1) times.push(await wakeUp(here, () => add(there)));
    stop();
    expect(times.sort((a, b) => a - b)[5]).toBeLessThan(paced(300));
  });

  test('is not woken by other queues, nor twice by its own store', async () => {
    const url = await newDatabase();
    const [here, there] = [await openStore({ url }), await openStore({ url })];
    let calls = 0;
    here.watch('q', () => void (calls += 1));
    await listening(url);
    // It is called for what it may have missed, by the first look and by the first connection, and by the second look.
    await sleep(1_300);
    const before = calls;
    await add(here);
    await until('the watcher is called', () => calls === before + 1);
    const other = new Promise<void>((resolve) => here.watch('other', resolve));
    await add(there, 'other');
    await other;
    expect(calls).toBe(before + 1);
  });

  test('is woken for odd queue names', async () => {
    const url = await newDatabase();
    const [here, there] = [await openStore({ url }), await openStore({ url })];
    for (const queue of ["o'brien", 'a b, c', 'ü 漢 🧵', '"q"']) {
      const woken = new Promise<void>((resolve) => here.watch(queue, resolve));
      await add(there, queue);
      await woken;
    }
  });

  test('is woken within a second or so without NOTIFY', async () => {
    const url = await newDatabase();
    const [here, there] = [await openStore({ url, notify: false }), await openStore({ url, notify: false })];
    const stop = here.watch('q', () => undefined);
    await sleep(2_200);
    expect(await wakeUp(here, () => add(there))).toBeLessThan(paced(5_000));
    expect(await wakeUp(here, () => there.configure('q', { paused: true }))).toBeLessThan(paced(5_000));
    expect(await wakeUp(here, () => there.configure('q', { blockedMs: 5 }))).toBeLessThan(paced(5_000));
    stop();
    const client = await newClient(url);
    const locks = `SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE locktype = 'advisory' AND datname = current_database()`;
    expect((await client.query(locks)).rowCount).toBe(0);
  });

  test('goes on being woken when its connections are killed, again and again', async () => {
    const url = await newDatabase();
    const [here, there] = [await openStore({ url }), await openStore({ url })];
    const admin = await newClient(url);
    const stop = here.watch('q', () => undefined);
    for (let round = 0; round < 5; round += 1) {
      await listening(url);
      await killConnections(admin);
      expect(await wakeUp(here, () => add(there))).toBeLessThan(paced(5_000));
    }
    stop();
  });

  test('of jobs is not woken by changes that make no job claimable, but one of events is', async () => {
    const url = await newDatabase();
    const [here, there] = [await openStore({ url }), await openStore({ url })];
    await add(there);
    const heard: string[] = [];
    const stops = (['jobs', 'events'] as const).map((what) => here.watch('q', () => void heard.push(what), what));
    await listening(url);
    // Called for what may have been missed, by the first look and by the first connection.
    await sleep(300);
    heard.length = 0;
    await there.write('q', [{ jobId: '1', kind: 'progress', progress: '1' }]);
    await until('the watcher of events is called', () => heard.length > 0, 900);
    expect(heard).toEqual(['events']);
    await there.change('q', ['1'], { kind: 'priority', priority: 1, lifo: false });
    await until('the watcher of jobs is called', () => heard.includes('jobs'));
    for (const stop of stops) stop();
  });

  test('is woken by a transaction that was open for long, without NOTIFY', async () => {
    const url = await newDatabase();
    const [here, there] = [await openStore({ url, notify: false }), await openStore({ url, notify: false })];
    const client = await newClient(url);
    await client.query('BEGIN');
    await there.add('q', [newJob()], { caller: 't', seq: 1 }, client);
    const stop = here.watch('q', () => undefined);
    // Longer than it takes until every store has polled twice.
    await sleep(2_200);
    expect(await wakeUp(here, async () => void (await client.query('COMMIT')))).toBeLessThan(paced(5_000));
    stop();
  });

  test('is still woken when the connections of its store break silently', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const here = await openStore({ url: proxy.url(server.url) });
    const there = await openStore({ url: server.url });
    const stop = here.watch('q', () => undefined);
    await listening(server.url);
    const warned = new Promise<Error>((resolve) => here.onWarning(resolve));
    proxy.strand();
    // Longer than the pool's look and the listener's beat wait for their answers.
    const took = stopwatch();
    expect(await warned).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(took()).toBeLessThan(paced(6_000));
    expect(await wakeUp(here, () => add(there))).toBeLessThan(paced(5_000));
    // The listener is back as well: told within milliseconds again.
    await until('it is woken at once again', async () => (await wakeUp(here, () => add(there))) < 100, 10_000);
    stop();
  });

  test('learns once of an outage that no call met, and is woken after it', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const here = await openStore({ url: proxy.url(server.url), connectTimeoutMs: 300 });
    const warnings: Error[] = [];
    here.onWarning((warning) => void warnings.push(warning));
    let calls = 0;
    const stop = here.watch('q', () => void (calls += 1));
    await listening(server.url);
    proxy.swallow('both');
    await until('a warning', () => warnings.length > 0, 6_000);
    expect(warnings).toMatchObject([{ code: 'STORE_UNAVAILABLE', retryable: true }]);
    await sleep(1_500);
    expect(warnings).toHaveLength(1);
    await add(await openStore({ url: server.url }));
    const before = calls;
    proxy.heal();
    await until('the watcher is called', () => calls > before, 4_000);
    stop();
  });

  test('is woken after the server was restarted', async () => {
    const server = await newServer();
    const [here, there] = [await openStore({ url: server.url }), await openStore({ url: server.url })];
    const stop = here.watch('q', () => undefined);
    await server.restart();
    expect(await wakeUp(here, () => add(there))).toBeLessThan(paced(5_000));
    stop();
  });
});
