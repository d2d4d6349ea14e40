import { describe, expect, it } from 'vitest';
import { newFile, newJob, newSession, openStore } from './support.js';

/** The row of a queue is kept in memory from one transaction to the next. */
describe('the row of a queue in SQLite', () => {
  it('is read again when another process has written, even to another queue', async () => {
    const path = newFile();
    const [one, other] = [await openStore({ path }), await openStore({ path })];
    const ids: string[] = [];
    for (let seq = 1; seq <= 3; seq += 1) {
      for (const store of [one, one, other, other]) {
        ids.push((await store.add('q', [newJob()], { caller: `p${ids.length}`, seq }))[0]?.id ?? '');
      }
      await other.add('another', [newJob()], { caller: 'a', seq });
    }
    expect(ids).toEqual(Array.from({ length: 12 }, (_, n) => String(n + 1)));
    expect((await one.status('q')).counts.waiting).toBe(12);
  });

  it('forgets what was rolled back', async () => {
    const store = await openStore({ path: newFile() });
    await store.openSession(newSession({ id: 'taken' }));
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    const [added, refused] = await Promise.allSettled([
      store.add('q', [newJob()], { caller: 'p', seq: 2 }),
      store.openSession(newSession({ id: 'taken' })),
    ]);
    expect(added).toMatchObject({ value: [{ id: '2' }] });
    expect(refused.status).toBe('rejected');
    expect((await store.add('q', [newJob()], { caller: 'p', seq: 3 }))[0]?.id).toBe('3');
    const { events } = await store.events('q', 0, 100);
    expect(events.map(({ name, jobId }) => `${name} ${jobId}`)).toEqual(
      ['1', '2', '3'].flatMap((id) => [`added ${id}`, `waiting ${id}`]),
    );
    expect((await store.status('q')).counts.waiting).toBe(3);
  });

  it('shows that a job returned nothing, which its event leaves out', async () => {
    const store = await openStore({ path: newFile() });
    await store.openSession(newSession({ id: 's' }));
    await store.add('q', [newJob(), newJob()], { caller: 'p', seq: 1 });
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 2 });
    await store.settle(
      'q',
      jobs.map(({ id, token }, index) => ({ kind: 'completed', jobId: id, token, value: ['null', '7'][index] ?? '', keep: {} })),
    );
    const { events } = await store.events('q', 0, 100);
    expect(events.filter(({ name }) => name === 'completed')).toMatchObject([{ returnvalue: 'null' }, { returnvalue: '7' }]);
  });
});
