// The crash hint: who is gone is suspected at once, and who lives is not, whatever happens to connections.
import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { killConnections, newClient, newDatabase, newProxy, newServer, newSession, openStore } from './support.js';
import { stopwatch } from '../../support/wait/stopwatch.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';
import { insist } from '../../support/wait/insist.js';

const HOLDER = fileURLToPath(new URL('holder.mjs', import.meta.url));
const GRACE_MS = 2_000;

/** A process that holds a session until it is killed. */
async function holder(url: string): Promise<{ kill(): void }> {
  const child = fork(HOLDER, [JSON.stringify({ url, session: newSession({ id: 'held' }) })]);
  onTestFinished(() => void child.kill('SIGKILL'));
  await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', () => reject(new Error('it ended before it was to')));
  });
  return { kill: () => void child.kill('SIGKILL') };
}

describe('a killed process on PostgreSQL', () => {
  test('is suspected within milliseconds of its death, not before', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const process = await holder(url);
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    process.kill();
    const took = stopwatch();
    await until('the session is suspected', async () => 'dueInMs' in (await store.probe('q')));
    expect(took()).toBeLessThan(paced(1_000));
    const [session] = await store.sessions('q');
    expect(session).toMatchObject({ id: 'held', suspected: true });
    expect(session?.expiresInMs).toBeLessThanOrEqual(GRACE_MS + 2);
  });

  test('is not suspected in the first seconds after a server restart, so that live processes can reconnect', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    const process = await holder(server.url);
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    process.kill();
    await server.restart();
    expect(await insist(() => store.probe('q'))).toEqual({ sessions: 1 });
    await until('the session is suspected', async () => 'dueInMs' in (await store.probe('q')));
  });
});

test('a session on PostgreSQL has its whole grace after an unsuspicious check, however late a probe commits', async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const process = await holder(url);
  process.kill();
  const prober = await newClient(url);
  // The server may take a moment to see that the process is gone.
  await until('a probe finds it', async () => {
    await prober.query('BEGIN');
    const { rows } = await prober.query<{ probe: string }>(`SELECT holdfast.probe('q', true)`);
    const isFound = JSON.parse(rows[0]?.probe ?? '[]')[2] === 1;
    if (!isFound) await prober.query('ROLLBACK');
    return isFound;
  });
  await sleep(300);
  const askedAt = performance.now();
  expect(await store.checkSessions([{ queue: 'q', id: 'held' }])).toEqual([{ unsuspected: true, noticed: false }]);
  await prober.query('COMMIT');
  expect(await store.checkSessions([{ queue: 'q', id: 'held' }])).toEqual([{ unsuspected: false, noticed: false }]);
  expect(await store.probe('q')).toHaveProperty('dueInMs');
  const [session] = await store.sessions('q');
  expect(performance.now() + (session?.expiresInMs ?? 0)).toBeGreaterThanOrEqual(askedAt + GRACE_MS - 1);
});

describe('a live process on PostgreSQL', () => {
  test('is suspected only briefly when its connections are killed, and gets its time back', async () => {
    const url = await newDatabase();
    const [here, there] = [await openStore({ url }), await openStore({ url })];
    const admin = await newClient(url);
    await here.openSession(newSession());
    for (let round = 0; round < 5; round += 1) {
      await killConnections(admin);
      await insist(() => there.probe('q'));
      await until('it is out of suspicion, and has its time back', async () => {
        const { sessions, dueInMs } = await insist(() => there.probe('q'));
        const [session] = await there.sessions('q');
        const { rowCount } = await admin.query('SELECT FROM holdfast.sessions WHERE vouched IS NOT NULL');
        const hasTime = session?.suspected === false && session.expiresInMs > GRACE_MS * 2;
        return sessions === 1 && dueInMs === undefined && hasTime && rowCount === 1;
      });
    }
  });

  test('holds its presence lock on a new connection when the first broke silently', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const here = await openStore({ url: proxy.url(server.url) });
    const there = await openStore({ url: server.url });
    const admin = await newClient(server.url);
    const vouched = async (): Promise<number | null> =>
      (await admin.query<{ vouched: number | null }>('SELECT vouched FROM holdfast.sessions')).rows[0]?.vouched ?? null;
    await here.openSession(newSession());
    const first = await vouched();
    // The server keeps the connection, and the lock that it holds.
    proxy.strand();
    await until('another connection vouches', async () => ![null, first].includes(await vouched()));
    expect(await there.probe('q')).toEqual({ sessions: 1 });
    const { rowCount } = await admin.query('SELECT FROM pg_locks WHERE locktype = $1 AND objid::int = ANY ($2)', [
      'advisory',
      [first, await vouched()],
    ]);
    expect(rowCount).toBe(2);
    proxy.swallow('both');
    await admin.query('SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = $1 AND objid::int = $2', [
      'advisory',
      await vouched(),
    ]);
    await until('the session is suspected', async () => 'dueInMs' in (await there.probe('q')));
  });

  test('is not suspected when it can no longer get a direct connection', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const here = await openStore({ url: server.url, max: 1 });
    await here.openSession(newSession());
    const admin = await newClient(server.url);
    const there = await openStore({ url: proxy.url(server.url) });
    // No client may connect any more; connected clients stay.
    await admin.query('ALTER DATABASE postgres CONNECTION LIMIT 0; ALTER ROLE postgres NOSUPERUSER');
    await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'`);
    await until('no connection vouches', async () => {
      const { rows } = await admin.query<{ vouched: number | null }>('SELECT vouched FROM holdfast.sessions');
      return rows.length === 1 && rows[0]?.vouched === null;
    });
    expect(await there.probe('q')).not.toHaveProperty('dueInMs');
    expect((await there.sessions('q'))[0]?.expiresInMs).toBeGreaterThan(GRACE_MS * 2);
  });

  test('opens sessions without a crash hint with notify: false', async () => {
    const url = await newDatabase();
    const store = await openStore({ url, notify: false });
    expect(store.capabilities.crashHints).toBe(false);
    await store.openSession(newSession());
    expect(await (await openStore({ url })).probe('q')).not.toHaveProperty('dueInMs');
    expect(await store.probe('q')).toEqual({ sessions: 1 });
  });
});
