// Facet: pause, rate limits, and writes to a job.
import assert from 'node:assert/strict';
import { between, ids, only } from './expect.js';
import { completed } from './samples.js';
import type { Test } from './suite.js';

export function control(test: Test): void {
  test('claim returns no job and paused while the queue is paused, and jobs after resume', async (scene) => {
    const id = await scene.addOne();
    const session = await scene.session();
    await scene.store.configure(scene.queue, { paused: true });
    const reply = await scene.tryClaim(session);
    assert.deepEqual([reply.jobs, reply.paused, reply.sessionAlive], [[], true, true]);
    assert.equal((await scene.store.status(scene.queue)).paused, true);
    await scene.store.configure(scene.queue, { paused: false });
    const resumed = await scene.tryClaim(session);
    assert.deepEqual([ids(resumed.jobs), resumed.paused], [[id], false]);
    assert.equal((await scene.store.status(scene.queue)).paused, false);
  });

  test('running jobs can finish in a paused queue, and a settle claims no new job', async (scene) => {
    const { session, job } = await scene.running();
    await scene.add({});
    await scene.store.configure(scene.queue, { paused: true });
    const call = scene.call(session);
    const { results, claimed } = await scene.store.settle(
      scene.queue,
      [completed(job)],
      call,
      scene.request(session, 1, { seq: call.seq }),
    );
    assert.deepEqual([results, claimed?.jobs, claimed?.paused], [['done'], [], true]);
  });

  test('pause is idempotent', async (scene) => {
    await scene.store.configure(scene.queue, { paused: true });
    await scene.store.configure(scene.queue, { paused: true });
    await scene.store.configure(scene.queue, { paused: false });
    assert.equal((await scene.store.status(scene.queue)).paused, false);
  });

  test.needs('caps')('configure changes all given settings at once, and leaves the others as they are', async (scene) => {
    const { store, queue } = scene;
    const settings = async () => {
      const { paused, blockedMs, cap } = await store.status(queue);
      return [paused, blockedMs !== undefined, cap];
    };
    const last = await scene.lastEvent();
    await store.configure(queue, { paused: true, blockedMs: scene.ms(60_000), cap: { maxActive: 2 } });
    assert.deepEqual(await settings(), [true, true, { maxActive: 2 }]);
    await store.configure(queue, {});
    assert.deepEqual(await settings(), [true, true, { maxActive: 2 }]);
    await store.configure(queue, { cap: null });
    assert.deepEqual(await settings(), [true, true, undefined]);
    await store.configure(queue, { paused: false, cap: { maxActive: 0 } });
    assert.deepEqual(await settings(), [false, true, { maxActive: 0 }]);
    await store.configure(queue, { blockedMs: 0, cap: null });
    assert.deepEqual(await settings(), [false, false, undefined]);
    assert.deepEqual(
      (await scene.events(last)).map(({ name }) => name),
      ['paused', 'resumed'],
    );
  });

  test.needs('caps').shared('no reader sees a part of the settings that one call gave', async (scene) => {
    const { store, queue } = scene;
    const peer = await scene.peer();
    let isChanging = true;
    const change = async () => {
      for (let round = 0; round < 30; round += 1) {
        await store.configure(queue, { paused: true, blockedMs: scene.ms(60_000), cap: { maxActive: 2 } });
        await store.configure(queue, { paused: false, blockedMs: 0, cap: null });
      }
    };
    const changed = change().finally(() => (isChanging = false));
    while (isChanging) {
      const { paused, blockedMs, cap } = await peer.store.status(queue);
      assert.deepEqual([blockedMs !== undefined, cap !== undefined], [paused, paused]);
      // A read may resolve within this turn of the event loop, in which the store would never write.
      await new Promise((resolve) => setImmediate(resolve));
    }
    await changed;
  });

  test('a block stops all claims of the queue for its duration', async (scene) => {
    await scene.add({});
    const session = await scene.session();
    await scene.store.configure(scene.queue, { blockedMs: scene.ms(10) });
    const reply = await scene.tryClaim(session);
    assert.deepEqual(reply.jobs, []);
    between(reply.limitedMs, 1, scene.ms(10), 'limitedMs');
    between(reply.nextInMs, 1, scene.ms(10), 'nextInMs');
    between((await scene.store.status(scene.queue)).blockedMs, 1, scene.ms(10), 'blockedMs of the status');
    await scene.pass(11);
    const free = await scene.tryClaim(session);
    assert.deepEqual([free.jobs.length, free.limitedMs], [1, undefined]);
    assert.equal((await scene.store.status(scene.queue)).blockedMs, undefined);
  });

  test.needs('caps', 'changing')(
    'claim moves due jobs to waiting also when the queue is paused, limited or full',
    async (scene) => {
      const session = await scene.session();
      const limit = { max: 1, durationMs: scene.ms(60_000) };
      const useWindow = async () => {
        await scene.add({ id: 'held' });
        assert.equal((await scene.claim(session, 1, { limit })).length, 1);
      };
      const holds: [string, () => Promise<void>, () => Promise<void>, object][] = [
        [
          'paused',
          () => scene.store.configure(scene.queue, { paused: true }),
          () => scene.store.configure(scene.queue, { paused: false }),
          {},
        ],
        [
          'limited',
          () => scene.store.configure(scene.queue, { blockedMs: scene.ms(60_000) }),
          () => scene.store.configure(scene.queue, { blockedMs: 0 }),
          {},
        ],
        ['over its window', useWindow, async () => undefined, { limit }],
        [
          'full',
          () => scene.store.configure(scene.queue, { cap: { maxActive: 1 } }),
          () => scene.store.configure(scene.queue, { cap: null }),
          {},
        ],
      ];
      for (const [what, hold, free, terms] of holds) {
        await hold();
        await scene.add({ id: `soon ${what}`, delayMs: scene.ms(20) }, { id: `late ${what}`, delayMs: scene.ms(50_000) });
        const before = await scene.tryClaim(session, 1, terms);
        assert.deepEqual(before.jobs, [], what);
        between(before.nextInMs, 1, scene.ms(20), `nextInMs while ${what}`);
        await scene.pass(21);
        const last = await scene.lastEvent();
        const due = await scene.tryClaim(session, 1, terms);
        assert.deepEqual([due.jobs, due.drained], [[], false], what);
        between(due.nextInMs, 1, scene.ms(50_000), `nextInMs after that while ${what}`);
        const recorded = (await scene.events(last)).map(({ name, jobId, prev }) => [name, jobId, prev]);
        assert.deepEqual(recorded, [['waiting', `soon ${what}`, 'delayed']], what);
        const { counts } = await scene.store.status(scene.queue);
        assert.deepEqual([counts.waiting, counts.delayed], [1, 1], what);
        await free();
        await scene.store.change(scene.queue, { lists: ['waiting', 'delayed'], limit: 10 }, { kind: 'remove' });
      }
    },
  );

  test('a block of 0 ends the current block', async (scene) => {
    await scene.add({});
    await scene.store.configure(scene.queue, { blockedMs: scene.ms(5_000) });
    await scene.store.configure(scene.queue, { blockedMs: 0 });
    assert.equal((await scene.claim(await scene.session())).length, 1);
  });

  test('a window allows at most `max` claims of all sessions together', async (scene) => {
    await scene.addMany(6);
    const [a, b] = [await scene.session(), await scene.session()];
    const limit = { max: 2, durationMs: scene.ms(10) };
    assert.equal((await scene.claim(a, 1, { limit })).length, 1);
    assert.equal((await scene.claim(b, 5, { limit })).length, 1, 'what is left of the window');
    const full = await scene.tryClaim(a, 5, { limit });
    assert.deepEqual(full.jobs, []);
    between(full.limitedMs, 1, scene.ms(10), 'limitedMs');
    between(full.nextInMs, 1, scene.ms(10), 'nextInMs');
    await scene.pass(11);
    assert.equal((await scene.claim(a, 5, { limit })).length, 2);
  });

  test('a window limits a claim within settle too', async (scene) => {
    await scene.addMany(3);
    const session = await scene.session();
    const limit = { max: 1, durationMs: scene.ms(50) };
    const [job] = await scene.claim(session, 1, { limit });
    assert(job);
    const call = scene.call(session);
    const { claimed } = await scene.store.settle(
      scene.queue,
      [completed(job)],
      call,
      scene.request(session, 1, { seq: call.seq, limit }),
    );
    assert.deepEqual(claimed?.jobs, []);
  });

  test('write replaces data in any state, with the token of the owner or without one', async (scene) => {
    const { job } = await scene.running();
    const write = async (data: string, token?: string): Promise<string> =>
      only(
        await scene.store.write(scene.queue, [{ jobId: job.id, kind: 'data', data, ...(token === undefined ? {} : { token }) }]),
      ).status;
    assert.equal(await write('"owner"', job.token), 'done');
    assert.equal((await scene.job(job.id)).data, '"owner"');
    assert.equal(await write('"outside"'), 'done');
    await scene.finish(completed(job));
    assert.equal((await scene.job(job.id)).data, '"outside"');
    assert.equal(await write('"after"'), 'done');
    assert.equal((await scene.job(job.id)).data, '"after"');
  });

  test('write stores progress as given, including zero and null', async (scene) => {
    const { job } = await scene.running();
    for (const progress of ['0', '42', 'null', '{"step":"two"}', '""', 'false']) {
      const write = { jobId: job.id, token: job.token, kind: 'progress', progress } as const;
      assert.equal(only(await scene.store.write(scene.queue, [write])).status, 'done');
      assert.equal((await scene.job(job.id)).progress, progress);
    }
  });

  test('write returns missing for an unknown job', async (scene) => {
    const writes = [
      { jobId: 'ghost', kind: 'data', data: '1' },
      { jobId: 'ghost', kind: 'progress', progress: '1' },
      { jobId: 'ghost', kind: 'log', row: 'x' },
      { jobId: 'ghost', kind: 'clearLogs' },
    ] as const;
    const replies = await scene.store.write(scene.queue, [...writes]);
    assert.deepEqual(
      replies.map(({ status }) => status),
      writes.map(() => 'missing'),
    );
    assert.equal((await scene.store.logs(scene.queue, 'ghost', { start: 0, end: -1, asc: true })).count, 0);
  });

  test('write counts log rows and with `keep` leaves only the newest', async (scene) => {
    const id = await scene.addOne();
    const log = async (row: string, keep?: number): Promise<number | undefined> =>
      only(await scene.store.write(scene.queue, [{ jobId: id, kind: 'log', row, ...(keep === undefined ? {} : { keep }) }]))
        .count;
    assert.deepEqual([await log('a'), await log('b'), await log('c'), await log('d', 2)], [1, 2, 3, 2]);
    assert.deepEqual(await scene.store.logs(scene.queue, id, { start: 0, end: -1, asc: true }), { logs: ['c', 'd'], count: 2 });
  });

  test('clearLogs removes all log rows or all but the newest', async (scene) => {
    const id = await scene.addOne();
    const rows = ['a', 'b', 'c', 'd'].map((row) => ({ jobId: id, kind: 'log', row }) as const);
    await scene.store.write(scene.queue, rows);
    await scene.store.write(scene.queue, [{ jobId: id, kind: 'clearLogs', keep: 1 }]);
    assert.deepEqual((await scene.store.logs(scene.queue, id, { start: 0, end: -1, asc: true })).logs, ['d']);
    await scene.store.write(scene.queue, [{ jobId: id, kind: 'clearLogs' }]);
    assert.deepEqual(await scene.store.logs(scene.queue, id, { start: 0, end: -1, asc: true }), { logs: [], count: 0 });
  });

  test('logs returns ranges of rows, oldest or newest first', async (scene) => {
    const id = await scene.addOne();
    await scene.store.write(
      scene.queue,
      ['a', 'b', 'c', 'd', 'e'].map((row) => ({ jobId: id, kind: 'log', row }) as const),
    );
    const read = async (start: number, end: number, asc: boolean) =>
      (await scene.store.logs(scene.queue, id, { start, end, asc })).logs;
    assert.deepEqual(await read(0, -1, true), ['a', 'b', 'c', 'd', 'e']);
    assert.deepEqual(await read(1, 2, true), ['b', 'c']);
    assert.deepEqual(await read(3, 99, true), ['d', 'e']);
    assert.deepEqual(await read(9, 10, true), []);
    assert.deepEqual(await read(0, -1, false), ['e', 'd', 'c', 'b', 'a']);
    assert.deepEqual(await read(0, 1, false), ['e', 'd']);
    assert.equal((await scene.store.logs(scene.queue, id, { start: 1, end: 1, asc: true })).count, 5, 'the count is of all rows');
  });
}
