import fs from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { newFile, newJob, newSession, openStore, StoreProcess } from './sqlite-support.js';

const GRACE_MS = 2_000;

const filesOf = (file: string): string[] => fs.readdirSync(`${file}-presence`);

async function working(file: string, session: string, graceMs = GRACE_MS): Promise<StoreProcess> {
  const worker = await StoreProcess.start(file);
  await worker.call('open');
  await worker.call('openSession', newSession({ id: session, graceMs }));
  return worker;
}

describe('the crash hint of the SQLite store', () => {
  it('a process killed with SIGKILL is suspected at the next probe: its sessions get the grace and no more', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const worker = await working(file, 'theirs');
    await worker.call('openSession', newSession({ id: 'theirs-too' }));
    expect(await store.probe('q')).toEqual({ sessions: 2 });
    await worker.kill();
    expect(await store.probe('q')).toMatchObject({ sessions: 2, dueInMs: expect.any(Number) as number });
    for (const { suspected, expiresInMs } of await store.sessions('q')) {
      expect(suspected).toBe(true);
      expect(expiresInMs).toBeLessThanOrEqual(GRACE_MS + 1);
    }
    expect((await store.probe('q')).dueInMs).toBeLessThanOrEqual(GRACE_MS);
  });

  it('its jobs are taken up after the grace', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    const worker = await working(file, 'theirs', 50);
    await worker.call('claim', 'q', { session: 'theirs', seq: 1, count: 1 });
    await worker.kill();
    await store.probe('q');
    await expect.poll(async () => (await store.sweep('q', 10)).stalled, { timeout: 2_000 }).toEqual(['1']);
  });

  it('a process that is frozen, or lives on, is not suspected', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const worker = await working(file, 'theirs');
    worker.signal('SIGSTOP');
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    worker.signal('SIGCONT');
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    await worker.end();
  });

  it('a store that was closed properly leaves no suspicion: its sessions simply expire', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const worker = await working(file, 'theirs');
    await worker.end();
    expect(filesOf(file)).toEqual([]);
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    expect((await store.sessions('q'))[0]?.expiresInMs).toBeGreaterThan(GRACE_MS);
  });

  it('the own process is never suspected, through whichever of its stores', async () => {
    const file = newFile();
    const [one, two] = [await openStore({ path: file }), await openStore({ path: file })];
    await one.openSession(newSession({ id: 'a' }));
    await two.openSession(newSession({ id: 'b' }));
    expect(filesOf(file)).toHaveLength(1);
    expect([await one.probe('q'), await two.probe('q')]).toEqual([{ sessions: 2 }, { sessions: 2 }]);
    await one.close();
    const other = await StoreProcess.start(file);
    await other.call('open');
    expect(await other.call('probe', 'q')).toEqual({ sessions: 2 });
  });

  it('no file of the own process is ever touched, for closing it would drop the lock of another copy of SQLite', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.openSession(newSession());
    const another = `${filesOf(file)[0]?.slice(0, -12)}another-copy`;
    fs.writeFileSync(`${file}-presence/${another}`, '');
    const db = new Database(file);
    db.prepare('UPDATE sessions SET presence = ?').run(another);
    db.close();
    expect(await store.probe('q')).toEqual({ sessions: 1 });
  });

  it('a renewal clears the suspicion', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const worker = await working(file, 'theirs');
    await worker.kill();
    await store.probe('q');
    expect(await store.renew([{ queue: 'q', id: 'theirs', acked: 0 }])).toMatchObject([{ alive: true }]);
    expect(await store.sessions('q')).toMatchObject([{ suspected: false }]);
    expect((await store.sessions('q'))[0]?.expiresInMs).toBeGreaterThan(GRACE_MS + 1_000);
  });

  it('speaks of its own queue alone, and never lengthens a session', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const worker = await working(file, 'long');
    await worker.call('openSession', newSession({ id: 'short', durationMs: 500 }));
    await worker.call('openSession', newSession({ queue: 'other', id: 'elsewhere' }));
    await worker.kill();
    expect((await store.probe('q')).dueInMs).toBeLessThanOrEqual(500);
    const short = (await store.sessions('q')).find(({ id }) => id === 'short');
    expect(short?.expiresInMs).toBeLessThanOrEqual(500);
    expect((await store.sessions('other'))[0]?.suspected).toBe(false);
  });

  it('removes the files of the dead once no session names them', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const worker = await working(file, 'theirs', 0);
    await worker.kill();
    await store.probe('q');
    expect(filesOf(file)).toHaveLength(1);
    await expect
      .poll(async () => (await store.sweep('q', 10), await store.probe('q'), filesOf(file)), { timeout: 2_000 })
      .toEqual([]);
  });

  it('removes what the dead left when nobody was there to see them die', async () => {
    const file = newFile();
    const worker = await working(file, 'theirs');
    await worker.call('closeSessions', [{ queue: 'q', id: 'theirs' }], false);
    await worker.kill();
    const [left] = filesOf(file);
    const store = await openStore({ path: file });
    await store.openSession(newSession({ id: 'ours' }));
    expect(filesOf(file)).toHaveLength(1);
    expect(filesOf(file)).not.toContain(left);
  });
});
