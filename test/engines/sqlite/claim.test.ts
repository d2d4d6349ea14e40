import { describe, expect, it } from 'vitest';
import { newFile, newJob, newSession, openStore } from './support.js';

describe('a claim on SQLite', () => {
  // Of jobs that never ran, only a part of the row is read; few are locked one by one, many together.
  it.each([1, 20])('returns a job as it is stored, whatever happened to it before (%i of each kind)', async (count) => {
    const store = await openStore({ path: newFile() });
    await store.openSession(newSession({ id: 's' }));
    const ids = (kind: string): string[] => Array.from({ length: count }, (_, n) => `${kind}-${n}`);
    const kinds = ['failed', 'released', 'done', 'fresh', 'progress', 'urgent'];
    await store.add(
      'q',
      kinds.flatMap((kind) => ids(kind).map((id) => newJob({ id, priority: kind === 'urgent' ? 3 : 0 }))),
      { caller: 'p', seq: 1 },
    );
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 3 * count, by: 'first' });
    await store.settle(
      'q',
      jobs.map(({ id: jobId, token }) => {
        if (jobId.startsWith('released')) return { kind: 'release', jobId, token };
        if (jobId.startsWith('done')) return { kind: 'completed', jobId, token, value: '1', keep: {} };
        return { kind: 'retry', jobId, token, delayMs: 0, lifo: false, reason: 'broken', stacktrace: '["at"]' };
      }),
    );
    await store.change('q', ids('done'), {
      kind: 'retry',
      from: 'completed',
      resetAttemptsMade: true,
      resetAttemptsStarted: true,
    });
    await store.write(
      'q',
      ids('progress').map((jobId) => ({ jobId, kind: 'progress', progress: '50' })),
    );
    const claimed = await store.claim('q', { session: 's', seq: 2, count: kinds.length * count, by: 'second' });
    expect(new Set(claimed.jobs.map(({ id }) => id))).toEqual(new Set(kinds.flatMap(ids)));
    const locks = new Map((await store.locks('q', { session: 's' })).map(({ jobId, token }) => [jobId, token]));
    for (const { token, fence: _, ...record } of claimed.jobs) {
      expect([record]).toEqual((await store.jobs('q', [record.id])).jobs);
      expect(token).toBe(locks.get(record.id));
    }
  });

  // Rows that lie side by side are locked by one statement, and many that do not by another.
  it.each([[[]], [['between']]])(
    'gives each job a fence of its own, in the order of the claim, with others in the file: %j',
    async (others) => {
      const store = await openStore({ path: newFile() });
      await store.openSession(newSession({ id: 's' }));
      for (let seq = 1; seq <= 40; seq += 1) {
        for (const queue of ['q', ...others]) await store.add(queue, [newJob({ lifo: seq > 30 })], { caller: 'p', seq });
      }
      const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 35, by: 'w' });
      const numbers = Array.from({ length: 35 }, (_, n) => (n < 10 ? 40 - n : n - 9));
      expect(jobs.map(({ id }) => id)).toEqual(numbers.map(String));
      expect(jobs.map(({ fence }) => fence - (jobs[0]?.fence ?? 0))).toEqual(numbers.map((_, n) => n));
      expect(await store.locks('q', { session: 's' })).toEqual(
        jobs.map(({ id: jobId, token }) => expect.objectContaining({ jobId, token })),
      );
      expect((await store.status('q')).counts).toMatchObject({ waiting: 5, active: 35 });
      expect((await store.claim('q', { session: 's', seq: 2, count: 35 })).jobs.map(({ id }) => id)).toEqual([
        '26',
        '27',
        '28',
        '29',
        '30',
      ]);
      for (const queue of others) expect((await store.status(queue)).counts).toMatchObject({ waiting: 40, active: 0 });
    },
  );
});
