// Large payloads on SQLite: what one commit and one turn of the loop carry, and how much of the events stays.
import fs from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { Queue } from '../../../src/queue/queue.js';
import { EVENTS_BYTES_KEPT, REPLY_BYTES } from '../../../src/store/budget.js';
import { afterwards, newFile, newJob, newSession, openStore } from './support.js';

const MB = 1024 * 1024;
const text = (bytes: number): string => JSON.stringify('x'.repeat(bytes - 2));

/** Counts commits as another connection sees them: each writes its events into a row. */
function eventRows(file: string): { rows: number; bytes: number; longest: number } {
  const db = new Database(file, { readonly: true });
  const sql = 'SELECT count(*) AS rows, total(octet_length(body)) AS bytes, max(octet_length(body)) AS longest FROM events';
  const row = db.prepare(sql).get() as { rows: number; bytes: number; longest: number };
  db.close();
  return row;
}

/** Counts turns of the event loop from here to the end of `work`. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  const count = (): void => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  await work();
  clearImmediate(next);
  return turns;
}

describe('large jobs on SQLite', () => {
  it('let the event loop turn while many are read at once, and while one read goes on after another', async () => {
    const store = await openStore({ path: newFile() });
    const queue = new Queue('q', { connection: store });
    afterwards(() => queue.close());
    const stored = queue.name;
    for (let n = 1; n <= 8; n += 1) await store.add(stored, [newJob({ data: text(8 * MB) })], { caller: 'p', seq: n });
    const ids = ['1', '2', '3', '4', '5', '6', '7', '8'];
    const read: string[] = [];
    const readOne = async (id: string): Promise<unknown> => {
      const [job] = (await store.jobs(stored, [id])).jobs;
      return read.push(job?.id ?? '');
    };
    expect(await turnsDuring(() => Promise.all([...ids, ...ids].map(readOne)))).toBeGreaterThan(1);
    expect(read).toEqual([...ids, ...ids]);
    expect(await turnsDuring(() => queue.getWaiting())).toBeGreaterThan(1);
    expect(await turnsDuring(() => queue.getJobs(['waiting', 'completed']))).toBeGreaterThan(1);
  });

  it('are still read when the store is closed meanwhile', async () => {
    const store = await openStore({ path: newFile() });
    await store.add('q', [newJob({ data: text(16 * MB) })], { caller: 'p', seq: 1 });
    const reads = Array.from({ length: 8 }, () => store.jobs('q', ['1']));
    await store.close();
    for (const { jobs } of await Promise.all(reads)) expect(jobs[0]?.data).toHaveLength(16 * MB);
    await expect(store.jobs('q', ['1'])).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  });

  it('are removed a few megabytes at a time', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    for (let n = 1; n <= 9; n += 1) await store.add('q', [newJob({ data: text(1.5 * MB) })], { caller: 'p', seq: n });
    const before = eventRows(file).rows;
    expect((await store.change('q', { lists: ['waiting'], limit: 5 }, { kind: 'remove' })).changed).toEqual([
      '1',
      '2',
      '3',
      '4',
      '5',
    ]);
    expect(eventRows(file).rows).toBe(before + 3);
    expect((await store.change('q', { lists: ['waiting'], limit: 1 }, { kind: 'remove' })).changed).toEqual(['6']);
    expect((await store.change('q', { lists: ['completed', 'waiting'], limit: 500 }, { kind: 'remove' })).changed).toEqual([
      '7',
      '8',
      '9',
    ]);
    expect((await store.status('q')).counts.waiting).toBe(0);
    const { events } = await store.events('q', 0, 1000);
    expect(events.flatMap(({ name, count }) => (name === 'cleaned' ? [count] : []))).toEqual([2, 2, 1, 1, 2, 1]);
  });

  it('are committed a few megabytes at a time, although they were added in one turn of the loop', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    // Time stands still: it would cut the batch as well.
    const time = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    afterwards(() => time.mockRestore());
    await Promise.all(
      Array.from({ length: 9 }, (_, n) => store.add('q', [newJob({ data: text(1.5 * MB) })], { caller: `p${n}`, seq: 1 })),
    );
    expect(eventRows(file).rows).toBe(5);
    await store.add('q', [newJob({ data: text(2 * MB) }), newJob({ data: text(5 * MB) })], { caller: 'p', seq: 1 });
    expect(eventRows(file).rows).toBe(6);
  });

  it('are not claimed in the commit that settles another one, but are in its reply', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.openSession(newSession());
    const data = text(REPLY_BYTES + 1);
    await store.add('q', [newJob({ data }), newJob({ data }), newJob({ data })], { caller: 'p', seq: 1 });
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 2 });
    const before = eventRows(file).rows;
    const settle = () =>
      store.settle(
        'q',
        jobs.map(({ id, token }) => ({ kind: 'completed', jobId: id, token, value: '1', keep: {} })),
        { caller: 's', seq: 2 },
        { session: 's', seq: 2, count: 2 },
      );
    const reply = await settle();
    expect(eventRows(file).rows).toBe(before + 2);
    expect(reply.results).toEqual(['done']);
    expect([reply.claimed?.jobs.map(({ id }) => id), reply.claimed?.more]).toEqual([['2'], true]);
    const again = await settle();
    expect(again.claimed?.jobs.map(({ id, token }) => [id, token])).toEqual(
      reply.claimed?.jobs.map(({ id, token }) => [id, token]),
    );
    expect((await store.status('q')).counts).toMatchObject({ active: 1, waiting: 1, completed: 1 });
  });

  it('leave the log short, although it is not copied inside of a commit', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    for (let n = 1; n <= 8; n += 1) await store.add('q', [newJob({ data: text(6 * MB) })], { caller: 'p', seq: n });
    expect(fs.statSync(`${file}-wal`).size).toBeLessThan(32 * MB);
  });

  it('do not make rows of events that a reader would have to parse as a whole', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.openSession(newSession());
    await store.add(
      'q',
      Array.from({ length: 6 }, () => newJob()),
      { caller: 'p', seq: 1 },
    );
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 6 });
    const value = text(0.6 * MB);
    await store.settle(
      'q',
      jobs.map(({ id, token }) => ({ kind: 'completed', jobId: id, token, value, keep: { count: 0 } })),
      { caller: 's', seq: 2 },
    );
    expect(eventRows(file).longest).toBeLessThan(MB);
    const { events } = await store.events('q', 0, 100);
    const told = events.filter(({ name }) => name === 'completed');
    expect(told.map(({ jobId }) => jobId)).toEqual(['1', '2', '3', '4', '5', '6']);
    expect(told.every(({ returnvalue }) => returnvalue === value)).toBe(true);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
  });

  it('with far too long an event log have it trimmed, in steps', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    const db = new Database(file);
    const body = JSON.stringify([['completed', '1', { returnvalue: text(2 * MB) }]]);
    const insert = db.prepare('INSERT INTO events (queue, first, last, body) VALUES (1, ?, ?, ?)');
    for (let n = 3; n < 33; n += 1) insert.run(n, n, body);
    db.prepare('UPDATE queues SET lastEvent = 32').run();
    db.close();
    let before = eventRows(file).bytes;
    for (let seq = 2; before > EVENTS_BYTES_KEPT + 2 * MB; seq += 1) {
      expect(seq).toBeLessThan(20);
      await store.add('q', [newJob({ name: 'n'.repeat(1.1 * MB) })], { caller: 'p', seq });
      const { bytes } = eventRows(file);
      expect(before - bytes).toBeLessThan(20 * MB);
      expect(bytes).toBeLessThan(before);
      before = bytes;
    }
    const { events } = await store.events('q', 0, 1_000);
    expect(events.length).toBeGreaterThan(0);
    expect((await store.events('q', events.at(-1)?.id, 1_000)).events.length).toBeGreaterThan(0);
  });
});
