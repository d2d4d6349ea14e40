// Facet: the rate of a queue, and the window that it shares with the limits of claims.
import assert from 'node:assert/strict';
import { between, ids, nth } from './expect.js';
import { completed, released } from './samples.js';
import type { Test } from './suite.js';

export function rates(test: Test): void {
  test('a rate limits the claims of all sessions together, with or without a limit of their own', async (scene) => {
    await scene.addMany(10);
    const [a, b] = [await scene.session(), await scene.session()];
    await scene.store.configure(scene.queue, { rate: { max: 3, durationMs: scene.ms(10) } });
    assert.equal((await scene.claim(a, 2)).length, 2);
    assert.equal((await scene.claim(b, 5)).length, 1, 'the rest of the window');
    const full = await scene.tryClaim(a, 5);
    assert.deepEqual([full.jobs, full.drained], [[], false]);
    between(full.limitedMs, 1, scene.ms(10), 'limitedMs');
    between(full.nextInMs, 1, scene.ms(10), 'nextInMs');
    await scene.pass(11);
    assert.equal((await scene.claim(b, 5)).length, 3);
  });

  test('the max of the queue and the duration of the claim apply if both have a limit', async (scene) => {
    await scene.addMany(10);
    const session = await scene.session();
    await scene.store.configure(scene.queue, { rate: { max: 2, durationMs: scene.ms(10) } });
    const limit = { max: 5, durationMs: scene.ms(100) };
    assert.equal((await scene.claim(session, 5, { limit })).length, 2);
    await scene.pass(11);
    const waiting = await scene.tryClaim(session, 5, { limit });
    assert.deepEqual(waiting.jobs, [], 'the window of the claim is still open');
    between(waiting.limitedMs, 1, scene.ms(90), 'limitedMs');
    await scene.pass(90);
    assert.equal((await scene.claim(session, 5, { limit })).length, 2);
  });

  test('a claim within settle keeps to the rate', async (scene) => {
    await scene.addMany(3);
    const session = await scene.session();
    await scene.store.configure(scene.queue, { rate: { max: 1, durationMs: scene.ms(50) } });
    const job = await scene.claimOne(session);
    const call = scene.call(session);
    const request = scene.request(session, 1, { seq: call.seq });
    const { results, claimed } = await scene.store.settle(scene.queue, [completed(job)], call, request);
    assert.deepEqual([results, claimed?.jobs], [['done'], []]);
    between(claimed?.limitedMs, 1, scene.ms(50), 'limitedMs');
  });

  test('a repeated claim returns its jobs again, and uses up the window once', async (scene) => {
    await scene.addMany(5);
    const session = await scene.session();
    await scene.store.configure(scene.queue, { rate: { max: 3, durationMs: scene.ms(50) } });
    const request = scene.request(session, 2);
    const first = await scene.store.claim(scene.queue, request);
    const again = await scene.store.claim(scene.queue, request);
    assert.deepEqual(ids(again.jobs), ids(first.jobs));
    assert.equal((await scene.claim(session, 5)).length, 1);
  });

  test('a released job stays counted in its window, and is the first to go on', async (scene) => {
    await scene.addMany(3);
    const session = await scene.session();
    await scene.store.configure(scene.queue, { rate: { max: 1, durationMs: scene.ms(10) } });
    const job = await scene.claimOne(session);
    await scene.finish(released(job));
    assert.deepEqual(await scene.claim(session, 5), []);
    await scene.pass(11);
    assert.deepEqual(ids(await scene.claim(session, 5)), [job.id]);
  });

  test('a change or removal of the rate applies at once, and the window stays open', async (scene) => {
    await scene.addMany(10);
    const session = await scene.session();
    const rate = (max: number) => scene.store.configure(scene.queue, { rate: { max, durationMs: scene.ms(50) } });
    await rate(2);
    assert.equal((await scene.claim(session, 5)).length, 2);
    await rate(3);
    assert.equal((await scene.claim(session, 5)).length, 1);
    await rate(1);
    assert.equal((await scene.claim(session, 5)).length, 0);
    await scene.store.configure(scene.queue, { rate: null });
    assert.equal((await scene.claim(session, 5)).length, 5);
  });

  test('the status shows rate, window and block, each while it lasts', async (scene) => {
    const { store, queue } = scene;
    const shown = async () => {
      const { rate, window, blockedMs } = await store.status(queue);
      return { rate, window, blockedMs };
    };
    await scene.addMany(5);
    const session = await scene.session();
    assert.deepEqual(await shown(), { rate: undefined, window: undefined, blockedMs: undefined });
    const rate = { max: 3, durationMs: scene.ms(20) };
    await store.configure(queue, { rate });
    assert.deepEqual(await shown(), { rate, window: undefined, blockedMs: undefined });
    await scene.claim(session, 2);
    const open = await shown();
    assert.deepEqual([open.rate, open.window?.used, open.blockedMs], [rate, 2, undefined]);
    between(open.window?.endsInMs, 1, scene.ms(20), 'endsInMs');
    await store.configure(queue, { blockedMs: scene.ms(30) });
    const blocked = await shown();
    assert.equal(blocked.window?.used, 2, 'a block leaves the window as it is');
    between(blocked.blockedMs, 1, scene.ms(30), 'blockedMs');
    await store.configure(queue, { blockedMs: 0 });
    assert.deepEqual(await shown(), { rate, window: undefined, blockedMs: undefined }, 'a block of 0 ends both');
    await scene.claim(session, 1);
    await scene.pass(21);
    assert.deepEqual((await shown()).window, undefined);
  });

  test('forget of an emptied queue removes the rate and its window', async (scene) => {
    const session = await scene.session();
    await scene.addMany(1);
    await scene.store.configure(scene.queue, { rate: { max: 1, durationMs: scene.ms(500) } });
    await scene.finish(completed(await scene.claimOne(session), { count: 0 }));
    await scene.store.forget(scene.queue, { all: true });
    const { rate, window } = await scene.store.status(scene.queue);
    assert.deepEqual([rate, window], [undefined, undefined]);
    await scene.addMany(3);
    assert.equal((await scene.claim(session, 3)).length, 3);
  });

  test.needs('claims-by-id')('claims by id pass the rate, and count in its window', async (scene) => {
    const all = await scene.addMany(4);
    const session = await scene.session();
    await scene.store.configure(scene.queue, { rate: { max: 2, durationMs: scene.ms(50) } });
    assert.equal((await scene.claim(session, 1)).length, 1);
    assert.equal((await scene.claim(session, 2, { jobIds: [nth(all, 2), nth(all, 3)] })).length, 2);
    assert.equal((await scene.store.status(scene.queue)).window?.used, 3);
    assert.deepEqual(await scene.claim(session, 5), []);
  });

  test.shared('no window holds more claims than the rate allows, over many connections', async (scene) => {
    await scene.addMany(200);
    const max = 20;
    await scene.store.configure(scene.queue, { rate: { max, durationMs: scene.ms(1_000) } });
    const peers = await Promise.all(Array.from({ length: 4 }, () => scene.peer()));
    const claims = peers.map(async (peer) => {
      const session = await peer.session();
      let got = 0;
      for (let round = 0; round < 10; round += 1) got += (await peer.claim(session, 3)).length;
      return got;
    });
    const total = (await Promise.all(claims)).reduce((sum, got) => sum + got, 0);
    assert.equal(total, max);
  });

  test.durable('a rate and its window outlive the store object', async (scene) => {
    await scene.addMany(3);
    const rate = { max: 1, durationMs: scene.ms(500) };
    await scene.store.configure(scene.queue, { rate });
    await scene.claimOne(await scene.session());
    const later = await scene.reopen();
    const status = await later.store.status(scene.queue);
    assert.deepEqual([status.rate, status.window?.used], [rate, 1]);
    assert.deepEqual(await later.claim(await later.session(), 5), []);
  });
}
