// Facet: what becomes of an entry and its draft when the owner ends, is removed, trimmed or retried.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import type { Change } from '../../store/contract/index.js';
import { addUnique, eventsSince, ID, ownerOf } from './deduplication.js';
import { changedAll, only, sorted } from './expect.js';
import { completed, delayed, failed, newJob, released, retried, retryFrom, returned } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

const KEEP = { keepLastIfActive: true } as const;

/** Adds an owner, claims it, and adds another job that becomes the draft of its entry. */
async function withDraft(
  scene: Scene,
  draft: Parameters<typeof newJob>[0] = {},
): Promise<{ owner: ClaimedJob; session: string }> {
  assert.equal((await addUnique(scene, KEEP, { id: 'owner' })).status, 'added');
  const session = await scene.session({ maxStalls: 0 });
  const owner = await scene.claimOne(session);
  assert.deepEqual(await addUnique(scene, KEEP, { data: '"draft"', ...draft }), { id: 'owner', status: 'deduplicated' });
  return { owner, session };
}

export function deduplicationEnds(test: Test): void {
  drafts(test);
  draftAdds(test);
  removals(test.needs('changing'));
  forgetting(test.needs('control'));
}

function drafts(test: Test): void {
  const ends: Record<string, (scene: Scene, owner: ClaimedJob, session: string) => Promise<unknown>> = {
    completes: (scene, owner) => scene.finish(completed(owner)),
    'completes and is removed on finishing': (scene, owner) => scene.finish(completed(owner, { count: 0 })),
    'fails for good': (scene, owner) => scene.finish(failed(owner)),
    'fails in a crashed session': (scene, _, session) =>
      scene.store.closeSessions([{ queue: scene.queue, id: session }], 'crashed'),
  };
  for (const [how, end] of Object.entries(ends)) {
    test(`a draft is added in the same step in which its owner ${how}`, async (scene) => {
      const { owner, session } = await withDraft(scene);
      await end(scene, owner, session);
      const id = only(await scene.list('waiting'));
      const { data, deduplicationId } = await scene.job(id);
      assert.deepEqual([data, deduplicationId], ['"draft"', ID]);
      assert.equal(await ownerOf(scene), id);
      assert.deepEqual(await addUnique(scene, KEEP), { id, status: 'deduplicated' });
    });
  }

  test('a draft is added when a sweep fails its owner', async (scene) => {
    await addUnique(scene, KEEP, { id: 'owner' });
    await scene.claimOne(await scene.briefSession({ maxStalls: 0 }));
    await addUnique(scene, KEEP, { id: 'draft' });
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: ['owner'] });
    assert.deepEqual(await scene.list('waiting'), ['draft']);
    assert.equal(await ownerOf(scene), 'draft');
  });

  const returns: Record<string, (scene: Scene, owner: ClaimedJob, session: string) => Promise<unknown>> = {
    'is retried': (scene, owner) => scene.finish(retried(owner)),
    'is retried with a delay': (scene, owner) => scene.finish(retried(owner, scene.ms(1_000))),
    'is delayed': (scene, owner) => scene.finish(delayed(owner, scene.ms(1_000))),
    'is released': (scene, owner) => scene.finish(released(owner)),
    'is handed back': (scene, owner) => scene.finish(returned(owner)),
    'is handed back by its closed session': (scene, _, session) =>
      scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed'),
  };
  for (const [how, lead] of Object.entries(returns)) {
    test(`a draft stays when its owner ${how}`, async (scene) => {
      const { owner, session } = await withDraft(scene);
      await lead(scene, owner, session);
      const { counts } = await scene.store.status(scene.queue);
      assert.equal(counts.waiting + counts.delayed, 1);
      assert.equal(await ownerOf(scene), 'owner');
      assert.deepEqual(await addUnique(scene, { ...KEEP }, { id: 'too-early' }), { id: 'owner', status: 'deduplicated' });
      if (counts.waiting === 0) return;
      const again = await scene.claimOne(await scene.session());
      await scene.finish(completed(again));
      const { data } = await scene.job(only(await scene.list('waiting')));
      assert.equal(data, '"draft"', 'an add while the owner waited did not replace the draft');
    });
  }

  test('keepLastIfActive keeps nothing while the owner is waiting or delayed', async (scene) => {
    await addUnique(scene, { id: 'waits', ...KEEP });
    await addUnique(scene, { id: 'sleeps', ...KEEP }, { delayMs: scene.ms(1_000) });
    assert.equal((await addUnique(scene, { id: 'waits', ...KEEP })).status, 'deduplicated');
    assert.equal((await addUnique(scene, { id: 'sleeps', ...KEEP })).status, 'deduplicated');
    await scene.finish(completed(await scene.claimOne(await scene.session())));
    assert.deepEqual(await scene.list('waiting'), []);
    assert.equal(await ownerOf(scene, 'waits'), undefined);
  });

  test('the last of many drafts is added, and only that one', async (scene) => {
    const { owner } = await withDraft(scene);
    for (let n = 0; n < 5; n += 1) await addUnique(scene, KEEP, { data: String(n) });
    await scene.finish(completed(owner));
    const id = only(await scene.list('waiting'));
    assert.equal((await scene.job(id)).data, '4');
    await scene.finish(completed(await scene.claimOne(await scene.session())));
    assert.deepEqual(await scene.list('waiting'), []);
    assert.equal(await ownerOf(scene), undefined);
  });

  test('an add without keepLastIfActive leaves the draft as it is', async (scene) => {
    const { owner } = await withDraft(scene);
    await addUnique(scene, { ttlMs: scene.ms(5), extend: true }, { data: '"other"' });
    await scene.pass(6);
    await scene.sweep();
    await scene.finish(completed(owner));
    assert.equal((await scene.job(only(await scene.list('waiting')))).data, '"draft"');
  });

  test('keepLastIfActive keeps a draft of an entry with a time, and the draft outlives that time', async (scene) => {
    await addUnique(scene, { ttlMs: scene.ms(5) }, { id: 'owner' });
    const owner = await scene.claimOne(await scene.session());
    assert.equal((await addUnique(scene, KEEP, { id: 'draft' })).status, 'deduplicated');
    await scene.pass(6);
    await scene.sweep();
    assert.equal(await ownerOf(scene), 'owner');
    await scene.finish(completed(owner));
    assert.deepEqual(await scene.list('waiting'), ['draft']);
  });

  test('a time has no effect with keepLastIfActive', async (scene) => {
    await addUnique(scene, { ...KEEP, ttlMs: scene.ms(5) });
    await scene.pass(6);
    assert.deepEqual(await addUnique(scene, { ...KEEP, ttlMs: scene.ms(5) }), { id: '1', status: 'deduplicated' });
    await scene.finish(completed(await scene.claimOne(await scene.session())));
    assert.equal(await ownerOf(scene), undefined);
  });

  test('keepLastIfActive with replace replaces a delayed owner and keeps a draft for an active one', async (scene) => {
    const both = { ...KEEP, replaceDelayed: true };
    await addUnique(scene, both, { id: 'first', delayMs: scene.ms(1_000) });
    assert.deepEqual(await addUnique(scene, both, { id: 'second' }), { id: 'second', status: 'added' });
    const owner = await scene.claimOne(await scene.session());
    assert.deepEqual(await addUnique(scene, both, { id: 'third' }), { id: 'second', status: 'deduplicated' });
    await scene.finish(completed(owner));
    assert.deepEqual(await scene.list('waiting'), ['third']);
  });

  test('replace drops the draft of an owner that went back to delayed', async (scene) => {
    const { owner } = await withDraft(scene);
    await scene.finish(delayed(owner, scene.ms(1_000)));
    assert.equal((await addUnique(scene, { replaceDelayed: true }, { id: 'new' })).status, 'added');
    await scene.finish(completed(await scene.claimOne(await scene.session())));
    assert.deepEqual(await scene.list('waiting'), []);
    assert.equal(await ownerOf(scene), undefined);
  });
}

/** How a draft becomes a job. */
function draftAdds(test: Test): void {
  test('a draft gets a generated id, or its given one', async (scene) => {
    const { owner } = await withDraft(scene);
    await scene.finish(completed(owner));
    // The add that kept the draft used up "1".
    assert.deepEqual(await scene.list('waiting'), ['2']);
    const next = await scene.claimOne(await scene.session());
    await addUnique(scene, KEEP, { id: 'given' });
    await scene.finish(completed(next));
    assert.deepEqual(await scene.list('waiting'), ['given']);
    assert.equal(await ownerOf(scene), 'given');
  });

  test('a draft is added with all its fields, and its delay counts from then', async (scene) => {
    const fields = { name: 'mail', opts: '{"attempts":3}', priority: 4, timestamp: 12_345, delayMs: scene.ms(20) };
    const { owner } = await withDraft(scene, { id: 'draft', ...fields });
    await scene.pass(30);
    await scene.finish(completed(owner));
    const { name, opts, priority, timestamp, delay, state } = await scene.job('draft');
    assert.deepEqual(
      [name, opts, priority, timestamp, delay, state],
      ['mail', '{"attempts":3}', 4, 12_345, scene.ms(20), 'delayed'],
    );
    const session = await scene.session();
    assert.deepEqual(await scene.claim(session), []);
    await scene.pass(21);
    assert.equal((await scene.claimOne(session)).id, 'draft');
  });

  test.needs('keys')('a draft with a lock key runs under this key', async (scene) => {
    const { owner } = await withDraft(scene, { id: 'draft', lockKey: 'k' });
    await scene.add({ id: 'other', lockKey: 'k' });
    const session = await scene.session();
    assert.equal((await scene.claimOne(session)).id, 'other');
    await scene.finish(completed(owner));
    assert.deepEqual(await scene.claim(session, 2), []);
  });

  test('a draft whose given id exists is dropped as a duplicate', async (scene) => {
    const { owner } = await withDraft(scene, { id: 'taken' });
    await scene.add({ id: 'taken', data: '"mine"' });
    const after = await scene.lastEvent();
    await scene.finish(completed(owner));
    assert.equal((await scene.job('taken')).data, '"mine"');
    assert.equal(await ownerOf(scene), undefined);
    const events = (await eventsSince(scene, after)).filter(({ jobId }) => jobId === 'taken');
    assert.deepEqual(events, [{ name: 'duplicated', jobId: 'taken' }]);
    assert.equal((await addUnique(scene)).status, 'added');
  });

  test('the events of a draft are those of an add, after the end of its owner', async (scene) => {
    const { owner } = await withDraft(scene, { id: 'draft' });
    const after = await scene.lastEvent();
    await scene.finish(completed(owner));
    assert.deepEqual(
      (await eventsSince(scene, after)).map(({ name, jobId }) => [name, jobId]),
      [
        ['completed', 'owner'],
        ['added', 'draft'],
        ['waiting', 'draft'],
      ],
    );
  });

  test('the claim in the same call as the end of its owner takes the draft', async (scene) => {
    const { owner, session } = await withDraft(scene, { id: 'draft' });
    const call = scene.call(session);
    const request = scene.request(session, 1, { seq: call.seq });
    const settle = () => scene.store.settle(scene.queue, [completed(owner)], call, request);
    const { claimed } = await settle();
    assert.equal(only(claimed?.jobs ?? []).id, 'draft');
    // The repetition adds no second draft.
    assert.deepEqual((await settle()).results, ['done']);
    const { counts } = await scene.store.status(scene.queue);
    assert.deepEqual([counts.waiting, counts.active], [0, 1]);
  });

  test('a repeated settle adds no second draft', async (scene) => {
    const { owner, session } = await withDraft(scene);
    const call = scene.call(session);
    for (let n = 0; n < 2; n += 1) {
      assert.deepEqual((await scene.store.settle(scene.queue, [completed(owner)], call)).results, ['done']);
    }
    assert.equal((await scene.list('waiting')).length, 1);
    // Without a call, the store recognises the finish by its token.
    assert.deepEqual(await scene.settle(completed(owner)), ['done']);
    assert.equal((await scene.list('waiting')).length, 1);
  });

  test('a stale outcome adds no draft', async (scene) => {
    const { owner, session } = await withDraft(scene);
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed');
    assert.deepEqual(await scene.settle(completed(owner)), ['lost']);
    assert.deepEqual(await scene.list('waiting'), ['owner']);
    assert.equal(await ownerOf(scene), 'owner');
  });

  test.needs('control')('a draft waits in a paused queue', async (scene) => {
    const { owner } = await withDraft(scene, { id: 'draft' });
    await scene.store.configure(scene.queue, { paused: true });
    await scene.finish(completed(owner));
    assert.equal(await scene.stateOf('draft'), 'waiting');
    const session = await scene.session();
    assert.deepEqual(await scene.claim(session), []);
    await scene.store.configure(scene.queue, { paused: false });
    assert.equal((await scene.claimOne(session)).id, 'draft');
  });

  test('many owners that end in one call all get their drafts', async (scene) => {
    const names = Array.from({ length: 20 }, (_, n) => `d${n}`);
    await scene.add(...names.map((id) => ({ deduplication: { id, ...KEEP } })));
    const owners = await scene.claim(await scene.session(), 20);
    await scene.add(...names.map((id) => ({ id: `draft-${id}`, deduplication: { id, ...KEEP } })));
    await scene.finish(...owners.map((owner, n) => (n % 2 === 0 ? completed(owner) : failed(owner))));
    assert.deepEqual(sorted(await scene.list('waiting')), sorted(names.map((id) => `draft-${id}`)));
    const { deduplication: found } = await scene.store.status(scene.queue, { deduplication: names });
    assert.deepEqual(
      found,
      names.map((id) => `draft-${id}`),
    );
  });

  test('S7-1 drafts that meet the end of the owner are never lost', async (scene) => {
    const session = await scene.session();
    for (let round = 0; round < 20; round += 1) {
      await addUnique(scene, KEEP);
      const owner = await scene.claimOne(session);
      const add = scene.store.add(scene.queue, [newJob({ data: '"last"', deduplication: { id: ID, ...KEEP } })], {
        caller: `p${round}`,
        seq: 1,
      });
      await Promise.all([scene.finish(completed(owner)), add]);
      // The add came first and left a draft, or it came second and added its job.
      const next = await scene.claimOne(session);
      assert.equal(next.data, '"last"');
      await scene.finish(completed(next));
      assert.deepEqual(await scene.list('waiting'), []);
    }
  });
}

function removals(test: Test): void {
  const removed: Record<string, (scene: Scene) => Promise<unknown>> = {
    'by its id': (scene) => scene.store.change(scene.queue, ['owner'], { kind: 'remove' }),
    'by a selection': (scene) =>
      scene.store.change(scene.queue, { lists: ['waiting', 'delayed', 'completed', 'failed'], limit: 10 }, { kind: 'remove' }),
  };
  for (const [how, remove] of Object.entries(removed)) {
    for (const ttlMs of [undefined, 600_000]) {
      const kind = ttlMs === undefined ? 'without a time' : 'with a time';
      test(`removing an owner ${how} deletes its entry ${kind}`, async (scene) => {
        await addUnique(scene, ttlMs === undefined ? {} : { ttlMs }, { id: 'owner' });
        await remove(scene);
        assert.equal(await ownerOf(scene), undefined);
        assert.equal((await addUnique(scene)).status, 'added');
      });
    }

    test(`removing a finished owner ${how} deletes an entry whose time runs`, async (scene) => {
      await addUnique(scene, { ttlMs: scene.ms(1_000) }, { id: 'owner' });
      await scene.finish(completed(await scene.claimOne(await scene.session())));
      assert.equal(await ownerOf(scene), 'owner');
      await remove(scene);
      assert.equal((await addUnique(scene)).status, 'added');
    });

    test(`removing an owner ${how} deletes its draft`, async (scene) => {
      const { owner } = await withDraft(scene);
      await scene.finish(released(owner));
      await remove(scene);
      assert.deepEqual(await scene.list('waiting'), []);
      assert.equal(await ownerOf(scene), undefined);
    });

    test(`removing a former owner ${how} leaves the entry of its successor`, async (scene) => {
      await addUnique(scene, {}, { id: 'owner' });
      await scene.finish(completed(await scene.claimOne(await scene.session())));
      await addUnique(scene, {}, { id: 'successor' });
      await scene.claimOne(await scene.session());
      await remove(scene);
      assert.equal(await scene.find('owner'), undefined);
      assert.equal(await ownerOf(scene), 'successor');
    });
  }

  test('remove leaves an active owner and its entry', async (scene) => {
    const { owner } = await withDraft(scene);
    const reply = await scene.store.change(scene.queue, ['owner'], { kind: 'remove' });
    assert.deepEqual(reply.others, [{ jobId: 'owner', status: 'locked' }]);
    await scene.finish(completed(owner));
    assert.equal((await scene.list('waiting')).length, 1);
  });

  const moves: Record<string, Change> = {
    promote: { kind: 'promote' },
    delay: { kind: 'delay', delayMs: 900_000 },
    priority: { kind: 'priority', priority: 3, lifo: false },
  };
  for (const [name, change] of Object.entries(moves)) {
    test(`${name} leaves the entry of its job`, async (scene) => {
      await addUnique(scene, {}, { id: 'owner', delayMs: 600_000 });
      assert.deepEqual(await scene.store.change(scene.queue, ['owner'], change), changedAll('owner'));
      assert.equal(await ownerOf(scene), 'owner');
    });
  }

  test('a revoked owner keeps its entry and its draft', async (scene) => {
    await withDraft(scene);
    await scene.store.change(scene.queue, ['owner'], { kind: 'revoke', reason: 'test' });
    assert.equal(await ownerOf(scene), 'owner');
    await scene.finish(completed(await scene.claimOne(await scene.session())));
    assert.equal((await scene.job(only(await scene.list('waiting')))).data, '"draft"');
  });

  test('a finished job that is retried owns its entry again if none counts', async (scene) => {
    const session = await scene.session();
    await addUnique(scene, {}, { id: 'owner' });
    await scene.finish(failed(await scene.claimOne(session)));
    await scene.store.change(scene.queue, ['owner'], retryFrom('failed'));
    assert.equal(await ownerOf(scene), 'owner');
    assert.deepEqual(await addUnique(scene), { id: 'owner', status: 'deduplicated' });
    await scene.finish(completed(await scene.claimOne(session)));
    assert.equal(await ownerOf(scene), undefined);
    await scene.store.change(scene.queue, { lists: ['completed'], limit: 10 }, retryFrom('completed'));
    assert.equal(await ownerOf(scene), 'owner');
  });

  test('a finished job that is retried leaves the entry of another job', async (scene) => {
    const session = await scene.session();
    await addUnique(scene, {}, { id: 'owner' });
    await scene.finish(failed(await scene.claimOne(session)));
    await addUnique(scene, {}, { id: 'successor', delayMs: 600_000 });
    await scene.store.change(scene.queue, ['owner'], retryFrom('failed'));
    assert.equal(await ownerOf(scene), 'successor');
    await scene.finish(completed(await scene.claimOne(session)));
    assert.equal(await ownerOf(scene), 'successor');
  });

  test('a retried job keeps the running time of its own entry', async (scene) => {
    await addUnique(scene, { ttlMs: scene.ms(20) }, { id: 'owner' });
    await scene.finish(failed(await scene.claimOne(await scene.session())));
    await scene.store.change(scene.queue, ['owner'], retryFrom('failed'));
    assert.equal(await ownerOf(scene), 'owner');
    await scene.pass(21);
    assert.equal((await addUnique(scene)).status, 'added');
  });
}

function forgetting(test: Test): void {
  test('forget deletes the entries of the named ids and counts them', async (scene) => {
    for (const id of ['a', 'b', 'c']) await addUnique(scene, { id });
    assert.equal(await scene.store.forget(scene.queue, { deduplication: ['a', 'x', 'c', 'a'] }), 2);
    const { deduplication: owners } = await scene.store.status(scene.queue, { deduplication: ['a', 'b', 'c'] });
    assert.deepEqual(owners, [undefined, '2', undefined]);
    assert.equal(await scene.store.forget(scene.queue, { deduplication: ['a'] }), 0);
    assert.deepEqual(await scene.list('waiting'), ['1', '2', '3']);
    assert.equal((await addUnique(scene, { id: 'a' })).status, 'added');
  });

  test('forget with ownedBy deletes only entries that this job owns', async (scene) => {
    await addUnique(scene, {}, { id: 'owner' });
    assert.equal(await scene.store.forget(scene.queue, { deduplication: [ID], ownedBy: 'other' }), 0);
    assert.equal(await ownerOf(scene), 'owner');
    assert.equal(await scene.store.forget(scene.queue, { deduplication: [ID], ownedBy: 'owner' }), 1);
    assert.equal(await ownerOf(scene), undefined);
  });

  test('forget does not count an entry whose time has passed', async (scene) => {
    await addUnique(scene, { id: 'short', ttlMs: scene.ms(5) });
    await addUnique(scene, { id: 'long', ttlMs: scene.ms(500) });
    await scene.pass(6);
    assert.equal(await scene.store.forget(scene.queue, { deduplication: ['short', 'long'] }), 1);
    assert.equal(await scene.store.forget(scene.queue, { deduplication: ['short', 'long'] }), 0);
  });

  test('forget drops the draft of the entry, and the end of the former owner leaves the next entry', async (scene) => {
    const { owner } = await withDraft(scene);
    assert.equal(await scene.store.forget(scene.queue, { deduplication: [ID] }), 1);
    assert.equal((await addUnique(scene, {}, { id: 'next' })).status, 'added');
    await scene.finish(completed(owner));
    assert.equal(await ownerOf(scene), 'next');
    assert.deepEqual(await scene.list('waiting'), ['next']);
  });

  test('forget of an emptied queue deletes all its entries', async (scene) => {
    await addUnique(scene, { ttlMs: scene.ms(1_000) });
    await scene.finish(completed(await scene.claimOne(await scene.session()), { count: 0 }));
    assert.equal(await ownerOf(scene), '1');
    await scene.store.forget(scene.queue, { all: true });
    assert.equal(await ownerOf(scene), undefined);
    assert.deepEqual(await addUnique(scene), { id: '1', status: 'added' });
  });
}
