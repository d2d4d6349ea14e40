import { describe, expect, it } from 'vitest';
import { newFile, newJob, newSession, openStore } from './sqlite-support.js';

describe('a claim on SQLite', () => {
  // Of jobs that never ran, only a part of the row is read; few are locked one by one, many together.
  it.each([1, 20])('hands a job out as it is stored, whatever has become of it before (%i of each kind)', async (count) => {
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
    await store.change(
      'q',
      ids('done').map((jobId) => ({
        jobId,
        kind: 'retry',
        from: 'completed',
        resetAttemptsMade: true,
        resetAttemptsStarted: true,
      })),
    );
    await store.write(
      'q',
      ids('progress').map((jobId) => ({ jobId, kind: 'progress', progress: '50' })),
    );
    const claimed = await store.claim('q', { session: 's', seq: 2, count: kinds.length * count, by: 'second' });
    expect(new Set(claimed.jobs.map(({ id }) => id))).toEqual(new Set(kinds.flatMap(ids)));
    const locks = new Map((await store.owned('q', 's')).map(({ jobId, token }) => [jobId, token]));
    for (const { token, fence: _, ...record } of claimed.jobs) {
      expect([record]).toEqual(await store.jobs('q', [record.id]));
      expect(token).toBe(locks.get(record.id));
    }
  });
});
