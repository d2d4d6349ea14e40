import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { newFile, newFolder, newJob, newSession, openStore, StoreProcess } from './support.js';

/** A closed database of another program, under a name that may look like one of ours. */
function foreignDatabase(file: string): string {
  const db = new Database(file);
  db.exec('CREATE TABLE theirs (a)');
  db.close();
  return file;
}

/** A presence file's name, of a process that is gone. */
const ourName = (): string => `4194305-1-${randomUUID()}`;

/** Opens a session, looks for the dead and ends it: whatever may be deleted is deleted then. */
async function work(file: string): Promise<string[]> {
  const store = await openStore({ path: file });
  const warnings: string[] = [];
  store.onWarning(({ message }) => warnings.push(message));
  await store.openSession(newSession({ id: 'ours' }));
  await store.openSession(newSession({ id: 'ours-too' }));
  for (let n = 0; n < 2; n += 1) {
    await store.probe('q');
    await store.closeSessions([{ queue: 'q', id: 'theirs' }], 'closed');
  }
  await store.close();
  return warnings;
}

const GRACE_MS = 2_000;

const filesOf = (file: string): string[] => fs.readdirSync(`${file}-presence`);

async function working(file: string, session: string, graceMs = GRACE_MS): Promise<StoreProcess> {
  const worker = await StoreProcess.start(file);
  await worker.call('open');
  await worker.call('openSession', newSession({ id: session, graceMs }));
  return worker;
}

describe('the crash hint of the SQLite store', () => {
  it('suspects a process killed with SIGKILL at the next probe, and leaves its sessions their grace', async () => {
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

  it('lets the jobs of a killed process be claimed after the grace', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    const worker = await working(file, 'theirs', 50);
    await worker.call('claim', 'q', { session: 'theirs', seq: 1, count: 1 });
    await worker.kill();
    await store.probe('q');
    await expect.poll(async () => (await store.sweep('q', 10)).stalled, { timeout: 2_000 }).toEqual(['1']);
  });

  it('does not suspect a frozen or a live process', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const worker = await working(file, 'theirs');
    worker.signal('SIGSTOP');
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    worker.signal('SIGCONT');
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    await worker.end();
  });

  it('does not suspect a store that was closed, whose sessions simply expire', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const worker = await working(file, 'theirs');
    await worker.end();
    expect(filesOf(file)).toEqual([]);
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    expect((await store.sessions('q'))[0]?.expiresInMs).toBeGreaterThan(GRACE_MS);
  });

  it('never suspects its own process, through any of its stores', async () => {
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

  it('never opens a presence file of its own process, because closing it would drop a lock', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.openSession(newSession());
    const another = `${filesOf(file)[0]?.slice(0, -12)}0123456789ab`;
    fs.writeFileSync(`${file}-presence/${another}`, '');
    const db = new Database(file);
    db.prepare('UPDATE sessions SET presence = ?').run(another);
    db.close();
    expect(await store.probe('q')).toEqual({ sessions: 1 });
  });

  it('is cleared by a renewal', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const worker = await working(file, 'theirs');
    await worker.kill();
    await store.probe('q');
    expect(await store.renew([{ queue: 'q', id: 'theirs', acked: 0 }])).toMatchObject([{ alive: true }]);
    expect(await store.sessions('q')).toMatchObject([{ suspected: false }]);
    expect((await store.sessions('q'))[0]?.expiresInMs).toBeGreaterThan(GRACE_MS + 1_000);
  });

  it('concerns its own queue alone, and never lengthens a session', async () => {
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

  it('removes files of processes whose death no process saw', async () => {
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

describe('the presence folder', () => {
  it('is not used when it is a link: nothing behind it is deleted, and a warning is emitted', async () => {
    const [file, elsewhere] = [newFile(), newFolder()];
    const theirs = [foreignDatabase(path.join(elsewhere, 'precious.db')), foreignDatabase(path.join(elsewhere, ourName()))];
    const empty = path.join(elsewhere, ourName());
    fs.writeFileSync(empty, '');
    fs.symlinkSync(elsewhere, `${file}-presence`);
    expect(await work(file)).toEqual([expect.stringMatching(/without crash hints.*-presence is a link/)]);
    for (const one of [...theirs, empty]) expect(fs.existsSync(one)).toBe(true);
    expect(fs.readdirSync(elsewhere)).toHaveLength(3);
  });

  it('is not followed when a link replaces it later', async () => {
    const [file, elsewhere] = [newFile(), newFolder()];
    const store = await openStore({ path: file });
    const worker = await working(file, 'theirs', 0);
    const name = filesOf(file)[0] as string;
    await worker.kill();
    await store.probe('q');
    fs.renameSync(`${file}-presence`, `${file}-moved`);
    fs.writeFileSync(path.join(elsewhere, name), '');
    fs.symlinkSync(elsewhere, `${file}-presence`);
    await expect.poll(async () => (await store.sweep('q', 10)).stalled.length + (await store.sessions('q')).length).toBe(0);
    await store.probe('q');
    expect(fs.readdirSync(elsewhere)).toEqual([name]);
  });

  it('may hold other files, links, hard links and content, which are neither deleted nor opened', async () => {
    const file = newFile();
    const folder = `${file}-presence`;
    fs.mkdirSync(folder, { mode: 0o700 });
    const outside = foreignDatabase(path.join(newFolder(), 'outside.db'));
    const linked = path.join(newFolder(), 'linked');
    fs.writeFileSync(linked, '');
    foreignDatabase(path.join(folder, 'precious.db'));
    foreignDatabase(path.join(folder, ourName()));
    fs.writeFileSync(path.join(folder, 'empty.db'), '');
    fs.symlinkSync(outside, path.join(folder, ourName()));
    fs.linkSync(linked, path.join(folder, ourName()));
    const before = fs.readdirSync(folder).sort();
    expect(await work(file)).toEqual([]);
    expect(fs.readdirSync(folder).sort()).toEqual(before);
    expect(fs.existsSync(outside)).toBe(true);
  });

  it('is not left through a name in the database that leads out of it', async () => {
    const file = newFile();
    const outside = [`${path.dirname(file)}/4-4-x.db`, `${path.dirname(file)}/${ourName()}`];
    for (const one of outside) fs.writeFileSync(one, '');
    const store = await openStore({ path: file });
    await store.openSession(newSession({ id: 'mine' }));
    for (const one of outside) {
      await store.openSession(newSession({ id: 'theirs' }));
      const db = new Database(file);
      db.prepare("UPDATE sessions SET presence = ? WHERE id = 'theirs'").run(`../${path.basename(one)}`);
      db.close();
      expect(await store.probe('q')).toEqual({ sessions: 2 });
      await store.closeSessions([{ queue: 'q', id: 'theirs' }], 'closed');
      await store.probe('q');
      expect(fs.existsSync(one)).toBe(true);
    }
  });

  const isRoot = process.geteuid?.() === 0;
  it.runIf(isRoot)('is not used when it belongs to another user: nothing is deleted, and a warning is emitted', async () => {
    const file = newFile();
    const folder = `${file}-presence`;
    fs.mkdirSync(folder);
    fs.writeFileSync(path.join(folder, ourName()), '');
    fs.chownSync(folder, 65_534, 65_534);
    expect(await work(file)).toEqual([expect.stringMatching(/belongs to another user/)]);
    expect(fs.readdirSync(folder)).toHaveLength(1);
  });

  it.runIf(isRoot)('keeps a file of another user', async () => {
    const file = newFile();
    const folder = `${file}-presence`;
    fs.mkdirSync(folder, { mode: 0o700 });
    fs.writeFileSync(path.join(folder, ourName()), '');
    fs.chownSync(path.join(folder, fs.readdirSync(folder)[0] as string), 65_534, 65_534);
    expect(await work(file)).toEqual([]);
    expect(fs.readdirSync(folder)).toHaveLength(1);
  });

  it('is made for this user alone, also an existing one that holds only its own files', async () => {
    const modeOf = (folder: string): number => fs.statSync(folder).mode & 0o777;
    const [made, tightened, foreign] = [newFile(), newFile(), newFile()];
    for (const file of [tightened, foreign]) {
      fs.mkdirSync(`${file}-presence`);
      fs.chmodSync(`${file}-presence`, 0o777);
    }
    fs.writeFileSync(`${foreign}-presence/theirs`, '');
    expect(await work(made)).toEqual([]);
    expect(await work(tightened)).toEqual([]);
    expect(await work(foreign)).toEqual([expect.stringMatching(/can be written to by other users.*chmod 700/)]);
    expect([made, tightened, foreign].map((file) => modeOf(`${file}-presence`))).toEqual([0o700, 0o700, 0o777]);
  });
});
