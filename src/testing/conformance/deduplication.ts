// Facet: deduplication when jobs are added: when an entry counts, what each mode does with a job that finds one, and races.
import assert from 'node:assert/strict';
import type { Deduplication } from '../../job/deduplication.js';
import type { ClaimedJob, NewJob } from '../../job/record.js';
import type { AddReply, StoredEvent } from '../../store/contract/index.js';
import { ids, only } from './expect.js';
import { completed, delayed, failed, newJob, released, retried, returned } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

/** The deduplication id of most tests. */
export const ID = 'report';

/** Adds one job with the deduplication id ID, in a given mode. */
export async function addUnique(scene: Scene, mode: Partial<Deduplication> = {}, job: Partial<NewJob> = {}): Promise<AddReply> {
  const deduplication = { id: ID, ...mode };
  return only(await scene.store.add(scene.queue, [newJob({ ...job, deduplication })], scene.call('p')));
}

/** Returns the job that owns the entry of ID. */
export async function ownerOf(scene: Scene, id = ID): Promise<string | undefined> {
  return only((await scene.store.status(scene.queue, { deduplication: [id] })).deduplication ?? []);
}

export async function eventsSince(scene: Scene, after: number): Promise<Omit<StoredEvent, 'id'>[]> {
  return (await scene.events(after)).map(({ id: _, ...event }) => event);
}

/** Leads a claimed owner into each state in which a simple entry counts. */
const COUNTING: Record<string, (scene: Scene, owner: ClaimedJob) => Promise<unknown>> = {
  active: async () => undefined,
  'waiting for a retry': (scene, owner) => scene.finish(retried(owner)),
  'delayed before a retry': (scene, owner) => scene.finish(retried(owner, scene.ms(1_000))),
  'delayed by its handler': (scene, owner) => scene.finish(delayed(owner, scene.ms(1_000))),
  released: (scene, owner) => scene.finish(released(owner)),
  'handed back': (scene, owner) => scene.finish(returned(owner)),
};

export function deduplication(test: Test): void {
  records(test);
  counting(test);
  lasting(test);
  replacing(test);
  replaying(test);
  racing(test);
}

function records(test: Test): void {
  test('the first job with a deduplication id is added and owns the entry', async (scene) => {
    assert.deepEqual(await addUnique(scene), { id: '1', status: 'added' });
    assert.equal(await ownerOf(scene), '1');
    const { deduplicationId, state } = await scene.job('1');
    assert.deepEqual([deduplicationId, state], [ID, 'waiting']);
    assert.equal((await scene.claimOne(await scene.session())).deduplicationId, ID);
  });

  test('a job without deduplication has no deduplication id', async (scene) => {
    const id = await scene.addOne();
    assert.equal('deduplicationId' in (await scene.job(id)), false);
    assert.equal('deduplication' in (await scene.store.status(scene.queue)), false);
  });

  test('status names the owner of each id, in order', async (scene) => {
    await addUnique(scene, { id: 'a' });
    await addUnique(scene, { id: 'b' });
    const { deduplication: owners, counts } = await scene.store.status(scene.queue, { deduplication: ['b', 'x', 'a', 'b'] });
    assert.deepEqual(owners, ['2', undefined, '1', '2']);
    assert.equal(counts.waiting, 2);
  });

  test('deduplication ids of every shape stay apart', async (scene) => {
    const shapes = [
      'a',
      'A',
      'a ',
      '0',
      '00',
      'ä',
      'a\u0308',
      '😀',
      "it's",
      '"quoted"',
      'a:b',
      'a,b',
      '{a}',
      '%',
      '__proto__',
      'x'.repeat(200),
    ];
    for (const id of shapes) assert.equal((await addUnique(scene, { id })).status, 'added', id);
    const owners = (await scene.store.status(scene.queue, { deduplication: shapes })).deduplication;
    assert.deepEqual(
      owners,
      shapes.map((_, index) => String(index + 1)),
    );
    for (const [index, id] of shapes.entries()) {
      assert.deepEqual(await addUnique(scene, { id }), { id: String(index + 1), status: 'deduplicated' });
      assert.equal((await scene.job(String(index + 1))).deduplicationId, id);
    }
  });

  test('entries of one queue do not concern another', async (scene) => {
    await addUnique(scene);
    const other = scene.at(`${scene.queue}-other`);
    assert.equal((await addUnique(other)).status, 'added');
    assert.equal(await ownerOf(other), '1');
  });

  test('deduplicated names the owner and the id that the job would have had', async (scene) => {
    await addUnique(scene, {}, { id: 'first' });
    const after = await scene.lastEvent();
    assert.deepEqual(await addUnique(scene), { id: 'first', status: 'deduplicated' });
    assert.deepEqual(await addUnique(scene, {}, { id: 'second' }), { id: 'first', status: 'deduplicated' });
    assert.deepEqual(await eventsSince(scene, after), [
      { name: 'deduplicated', jobId: 'first', deduplicationId: ID, deduplicatedJobId: '1' },
      { name: 'deduplicated', jobId: 'first', deduplicationId: ID, deduplicatedJobId: 'second' },
    ]);
    assert.equal(await scene.find('second'), undefined);
    assert.deepEqual(await scene.list('waiting'), ['first']);
    // The generated id of the dropped job is used up.
    assert.equal(await scene.addOne(), '2');
  });

  test('a given id that exists is a duplicate, and the entry stays as it is', async (scene) => {
    await scene.add({ id: 'known' });
    await addUnique(scene, {}, { id: 'owner' });
    assert.deepEqual(await addUnique(scene, {}, { id: 'known' }), { id: 'known', status: 'duplicate' });
    assert.deepEqual(await addUnique(scene, { replaceDelayed: true }, { id: 'owner' }), { id: 'owner', status: 'duplicate' });
    assert.equal(await ownerOf(scene), 'owner');
    assert.deepEqual(await addUnique(scene, { id: 'free' }, { id: 'known' }), { id: 'known', status: 'duplicate' });
    assert.equal(await ownerOf(scene, 'free'), undefined);
  });

  test('a call with many jobs judges each job after the ones before it', async (scene) => {
    const jobs = [{ deduplication: { id: 'a' } }, {}, { deduplication: { id: 'a' } }, { deduplication: { id: 'b' } }, {}];
    assert.deepEqual(await scene.store.add(scene.queue, jobs.map(newJob), scene.call('p')), [
      { id: '1', status: 'added' },
      { id: '2', status: 'added' },
      { id: '1', status: 'deduplicated' },
      { id: '4', status: 'added' },
      { id: '5', status: 'added' },
    ]);
    assert.deepEqual(await scene.order(), ['1', '2', '4', '5']);
  });
}

/** When a simple entry counts. */
function counting(test: Test): void {
  for (const [state, job] of Object.entries({ waiting: {}, prioritized: { priority: 3 }, delayed: { delayMs: 600_000 } })) {
    test(`a simple entry counts while its owner is ${state}`, async (scene) => {
      await addUnique(scene, {}, job);
      assert.deepEqual(await addUnique(scene), { id: '1', status: 'deduplicated' });
      assert.equal(await ownerOf(scene), '1');
    });
  }

  for (const [state, lead] of Object.entries(COUNTING)) {
    test(`a simple entry counts while its owner is ${state}`, async (scene) => {
      await addUnique(scene);
      await lead(scene, await scene.claimOne(await scene.session()));
      assert.deepEqual(await addUnique(scene), { id: '1', status: 'deduplicated' });
      assert.equal(await ownerOf(scene), '1');
    });
  }

  test('a simple entry counts while its owner waits after a stall', async (scene) => {
    await addUnique(scene);
    await scene.claimOne(await scene.briefSession());
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: ['1'], failed: [] });
    assert.deepEqual(await addUnique(scene), { id: '1', status: 'deduplicated' });
  });

  for (const [state, outcome] of Object.entries({ completed, failed })) {
    test(`a simple entry ends when its owner is ${state}`, async (scene) => {
      await addUnique(scene);
      await scene.finish(outcome(await scene.claimOne(await scene.session())));
      assert.equal(await ownerOf(scene), undefined);
      assert.deepEqual(await addUnique(scene), { id: '2', status: 'added' });
      assert.equal(await ownerOf(scene), '2');
    });
  }

  test('a simple entry ends when a sweep fails its owner', async (scene) => {
    await addUnique(scene);
    await scene.claimOne(await scene.briefSession({ maxStalls: 0 }));
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: ['1'] });
    assert.equal(await ownerOf(scene), undefined);
    assert.deepEqual(await addUnique(scene), { id: '2', status: 'added' });
  });

  test('a simple entry ends when the end of a crashed session fails its owner', async (scene) => {
    await addUnique(scene);
    const session = await scene.session({ maxStalls: 0 });
    await scene.claimOne(session);
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'crashed');
    assert.equal(await scene.stateOf('1'), 'failed');
    assert.deepEqual(await addUnique(scene), { id: '2', status: 'added' });
  });

  test('the end of an owner in the same call as the next claim frees its entry', async (scene) => {
    await addUnique(scene);
    await scene.add({});
    const session = await scene.session();
    const owner = await scene.claimOne(session);
    const call = scene.call(session);
    const reply = await scene.store.settle(scene.queue, [completed(owner)], call, scene.request(session, 1, { seq: call.seq }));
    assert.deepEqual(ids(reply.claimed?.jobs ?? []), ['2']);
    assert.equal(await ownerOf(scene), undefined);
  });
}

/** Entries with an end of their own: throttle and extend. */
function lasting(test: Test): void {
  test('an entry with a time counts after its owner has ended, until the time has passed', async (scene) => {
    await addUnique(scene, { ttlMs: scene.ms(20) });
    await scene.finish(completed(await scene.claimOne(await scene.session())));
    assert.deepEqual(await addUnique(scene, { ttlMs: scene.ms(20) }), { id: '1', status: 'deduplicated' });
    assert.equal(await ownerOf(scene), '1');
    await scene.pass(21);
    assert.equal(await ownerOf(scene), undefined);
    assert.deepEqual(await addUnique(scene, { ttlMs: scene.ms(20) }), { id: '3', status: 'added' });
    assert.equal(await ownerOf(scene), '3');
  });

  test('an entry with a time outlives an owner that was removed on finishing', async (scene) => {
    await addUnique(scene, { ttlMs: scene.ms(20) });
    await scene.finish(completed(await scene.claimOne(await scene.session()), { count: 0 }));
    assert.equal(await scene.find('1'), undefined);
    assert.deepEqual(await addUnique(scene), { id: '1', status: 'deduplicated' });
    assert.equal(await ownerOf(scene), '1');
    await scene.pass(21);
    assert.equal((await addUnique(scene)).status, 'added');
  });

  test.needs('keeping')('an entry with a time outlives an owner that newer finished jobs have pushed out', async (scene) => {
    await addUnique(scene, { ttlMs: scene.ms(1_000) });
    await scene.add({});
    const session = await scene.session();
    await scene.finish(completed(await scene.claimOne(session), { count: 1 }));
    await scene.finish(completed(await scene.claimOne(session), { count: 1 }));
    assert.equal(await scene.find('1'), undefined);
    assert.deepEqual(await addUnique(scene), { id: '1', status: 'deduplicated' });
  });

  test('an entry whose time has passed does not count, although its owner is waiting', async (scene) => {
    await addUnique(scene, { ttlMs: scene.ms(5) });
    await scene.pass(6);
    assert.deepEqual(await addUnique(scene), { id: '2', status: 'added' });
    assert.deepEqual(await scene.list('waiting'), ['1', '2']);
    // The end of the former owner does not touch the entry of the next one.
    await scene.finish(completed(await scene.claimOne(await scene.session())));
    assert.equal(await ownerOf(scene), '2');
  });

  test('a deduplicated add does not change the end of an entry without extend', async (scene) => {
    await addUnique(scene, { ttlMs: scene.ms(20) });
    await scene.pass(10);
    await addUnique(scene, { ttlMs: scene.ms(20) });
    await addUnique(scene, { extend: true });
    await addUnique(scene, { extend: true, ttlMs: scene.ms(100), keepLastIfActive: true });
    await scene.pass(11);
    assert.equal((await addUnique(scene)).status, 'added');
  });

  test('extend lets the time of an entry start again', async (scene) => {
    const mode = { ttlMs: scene.ms(20), extend: true };
    await addUnique(scene, mode);
    for (let round = 0; round < 3; round += 1) {
      await scene.pass(12);
      assert.deepEqual(await addUnique(scene, mode), { id: '1', status: 'deduplicated' });
    }
    await scene.pass(21);
    assert.equal((await addUnique(scene, mode)).status, 'added');
  });

  test('a sweep leaves entries whose time has not passed', async (scene) => {
    await addUnique(scene, { id: 'short', ttlMs: scene.ms(5) });
    await addUnique(scene, { id: 'long', ttlMs: scene.ms(500) });
    await addUnique(scene, { id: 'simple' });
    await scene.pass(6);
    await scene.sweep();
    const { deduplication: owners } = await scene.store.status(scene.queue, { deduplication: ['short', 'long', 'simple'] });
    assert.deepEqual(owners, [undefined, '2', '3']);
    assert.equal((await addUnique(scene, { id: 'short', ttlMs: scene.ms(500) })).status, 'added');
    await scene.sweep();
    assert.equal(await ownerOf(scene, 'short'), '4');
  });
}

function replacing(test: Test): void {
  test('replace removes a delayed owner and gives its entry to the new job', async (scene) => {
    await addUnique(scene, { replaceDelayed: true }, { delayMs: scene.ms(1_000), data: '"old"' });
    const after = await scene.lastEvent();
    const reply = await addUnique(scene, { replaceDelayed: true }, { delayMs: scene.ms(2_000), data: '"new"' });
    assert.deepEqual(reply, { id: '2', status: 'added' });
    assert.equal(await scene.find('1'), undefined);
    assert.deepEqual(await scene.list('delayed'), ['2']);
    const { data, delay } = await scene.job('2');
    assert.deepEqual([data, delay], ['"new"', scene.ms(2_000)]);
    assert.equal(await ownerOf(scene), '2');
    const events = await eventsSince(scene, after);
    assert.deepEqual(events.slice(0, 3), [
      { name: 'removed', jobId: '1', prev: 'delayed' },
      { name: 'deduplicated', jobId: '2', deduplicationId: ID, deduplicatedJobId: '1' },
      { name: 'added', jobId: '2', jobName: 'work' },
    ]);
    assert.deepEqual(
      events.slice(3).map(({ name, jobId }) => [name, jobId]),
      [['delayed', '2']],
    );
  });

  test('replace by a job without a delay lets the new job wait', async (scene) => {
    await addUnique(scene, {}, { delayMs: scene.ms(1_000) });
    assert.deepEqual(await addUnique(scene, { replaceDelayed: true }, { id: 'now' }), { id: 'now', status: 'added' });
    assert.deepEqual(await scene.order(), ['now']);
    assert.equal((await scene.store.status(scene.queue)).counts.delayed, 0);
  });

  for (const state of ['waiting', 'active'] as const) {
    test(`replace leaves an owner that is ${state}`, async (scene) => {
      await addUnique(scene);
      if (state === 'active') await scene.claimOne(await scene.session());
      const mode = { replaceDelayed: true };
      assert.deepEqual(await addUnique(scene, mode, { delayMs: scene.ms(1_000) }), { id: '1', status: 'deduplicated' });
      assert.deepEqual([await scene.stateOf('1'), await scene.list('delayed')], [state, []]);
    });
  }

  test('replace leaves an owner that has ended while the time of its entry runs', async (scene) => {
    await addUnique(scene, { ttlMs: scene.ms(500) });
    await scene.finish(completed(await scene.claimOne(await scene.session())));
    assert.deepEqual(await addUnique(scene, { replaceDelayed: true }), { id: '1', status: 'deduplicated' });
    assert.equal(await scene.stateOf('1'), 'completed');
  });

  test('replace keeps the end of the entry, and with extend its time starts again', async (scene) => {
    const delayMs = scene.ms(1_000);
    for (const [extend, status] of [
      [false, 'added'],
      [true, 'deduplicated'],
    ] as const) {
      const id = String(extend);
      await addUnique(scene, { id, ttlMs: scene.ms(20) }, { delayMs });
      await scene.pass(10);
      const next = await addUnique(scene, { id, ttlMs: scene.ms(20), replaceDelayed: true, extend }, { delayMs });
      assert.equal(next.status, 'added');
      assert.equal(await ownerOf(scene, id), next.id);
      await scene.pass(11);
      assert.equal((await addUnique(scene, { id })).status, status);
    }
  });

  test('fifty replacements leave one delayed job, the last', async (scene) => {
    const jobs = Array.from({ length: 50 }, (_, n) =>
      newJob({ id: `j${n}`, delayMs: scene.ms(1_000), deduplication: { id: ID, replaceDelayed: true } }),
    );
    const replies = await scene.store.add(scene.queue, jobs, scene.call('p'));
    assert(replies.every(({ status }) => status === 'added'));
    assert.deepEqual(await scene.list('delayed'), ['j49']);
    assert.equal(await ownerOf(scene), 'j49');
    assert.equal((await scene.store.status(scene.queue)).counts.delayed, 1);
  });
}

function replaying(test: Test): void {
  test('a repeated add returns the first reply, also when the owner has ended', async (scene) => {
    const add = (seq: number) =>
      scene.store.add(scene.queue, [newJob({ deduplication: { id: ID } })], { caller: 'repeats', seq });
    assert.deepEqual(await add(1), [{ id: '1', status: 'added' }]);
    assert.deepEqual(await add(1), [{ id: '1', status: 'added' }]);
    assert.deepEqual(await add(2), [{ id: '1', status: 'deduplicated' }]);
    await scene.finish(completed(await scene.claimOne(await scene.session())));
    const after = await scene.lastEvent();
    assert.deepEqual(await add(2), [{ id: '1', status: 'deduplicated' }]);
    assert.deepEqual(await eventsSince(scene, after), []);
    assert.equal(await ownerOf(scene), undefined);
    assert.deepEqual(await add(3), [{ id: '3', status: 'added' }]);
  });

  test('a repeated replacement removes nothing again', async (scene) => {
    const job = newJob({ delayMs: scene.ms(1_000), deduplication: { id: ID, replaceDelayed: true } });
    const add = (seq: number) => scene.store.add(scene.queue, [job], { caller: 'repeats', seq });
    await add(1);
    assert.deepEqual(await add(2), [{ id: '2', status: 'added' }]);
    assert.deepEqual(await add(2), [{ id: '2', status: 'added' }]);
    assert.deepEqual(await scene.list('delayed'), ['2']);
  });

  test.durable('entries are there after the store is opened again', async (scene) => {
    await addUnique(scene, { id: 'simple' });
    await addUnique(scene, { id: 'timed', ttlMs: scene.ms(1_000) });
    const again = await scene.reopen();
    assert.equal((await again.job('1')).deduplicationId, 'simple');
    const { deduplication: owners } = await again.store.status(scene.queue, { deduplication: ['simple', 'timed'] });
    assert.deepEqual(owners, ['1', '2']);
  });
}

function racing(test: Test): void {
  const race = async (scene: Scene, sides: Scene[], mode: Partial<Deduplication>): Promise<void> => {
    const calls = Array.from({ length: 50 }, (_, n) => {
      const job = newJob({ data: String(n), deduplication: { id: ID, ...mode } });
      return (sides[n % sides.length] as Scene).store.add(scene.queue, [job], { caller: `p${n}`, seq: 1 });
    });
    const replies = (await Promise.all(calls)).flat();
    const { id } = only(replies.filter(({ status }) => status === 'added'));
    assert(
      replies.every((reply) => reply.id === id),
      'every reply names the owner',
    );
    assert.deepEqual(await scene.list('waiting'), [id]);
    assert.equal(await ownerOf(scene), id);
    const events = (await scene.events()).filter(({ name }) => name === 'deduplicated');
    assert.equal(new Set(events.map(({ deduplicatedJobId }) => deduplicatedJobId)).size, 49);
  };

  test('S7-1 fifty adds at once with one deduplication id make one job', (scene) => race(scene, [scene], {}));

  test('S7-1 fifty adds at once with one deduplication id and a time make one job', (scene) =>
    race(scene, [scene], { ttlMs: scene.ms(1_000), extend: true }));

  test.shared('S7-1 fifty adds at once through two connections make one job', async (scene) =>
    race(scene, [scene, await scene.peer()], {}),
  );

  test('fifty replacements at once leave one delayed job that owns the entry', async (scene) => {
    const calls = Array.from({ length: 50 }, (_, n) => {
      const job = newJob({ delayMs: scene.ms(1_000), deduplication: { id: ID, replaceDelayed: true } });
      return scene.store.add(scene.queue, [job], { caller: `p${n}`, seq: 1 });
    });
    await Promise.all(calls);
    const owner = only(await scene.list('delayed'));
    assert.equal(await ownerOf(scene), owner);
    assert.equal((await scene.store.status(scene.queue)).counts.delayed, 1);
  });

  test('adds that meet the end of the owner leave one owner at most, and no add is lost', async (scene) => {
    const session = await scene.session();
    for (let round = 0; round < 20; round += 1) {
      await addUnique(scene);
      const owner = await scene.claimOne(session);
      const adds = Array.from({ length: 5 }, (_, n) =>
        scene.store.add(scene.queue, [newJob({ deduplication: { id: ID } })], { caller: `p${round}-${n}`, seq: 1 }),
      );
      const [, ...replies] = await Promise.all([scene.finish(completed(owner)), ...adds]);
      const added = replies.flat().filter(({ status }) => status === 'added');
      assert(added.length <= 1, `${added.length} jobs were added`);
      const successor = added[0]?.id;
      for (const { id } of replies.flat()) assert(id === owner.id || id === successor, `${id} owned the entry`);
      assert.equal(await ownerOf(scene), successor);
      assert.deepEqual(
        await scene.list('waiting'),
        added.map(({ id }) => id),
      );
      if (successor !== undefined) await scene.finish(completed(await scene.claimOne(session)));
    }
  });
}
