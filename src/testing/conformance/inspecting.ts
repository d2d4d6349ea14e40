// Facet: reading a queue changes nothing and returns its true state.
import assert from 'node:assert/strict';
import type { ListName } from '../../store/contract/index.js';
import { ids, nth } from './expect.js';
import { completed, failed } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function inspecting(test: Test): void {
  test('jobs returns records in the order of the ids, and undefined for unknown ids', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' });
    const records = (await scene.store.jobs(scene.queue, ['b', 'ghost', 'a', 'b'])).jobs;
    assert.deepEqual(
      records.map((record) => record?.id),
      ['b', undefined, 'a', 'b'],
    );
  });

  test('each state has its list, and the counts equal the lengths of the lists', async (scene) => {
    await scene.add(
      { id: 'done' },
      { id: 'broken' },
      { id: 'runs' },
      { id: 'waits' },
      { id: 'prior', priority: 1 },
      { id: 'later', delayMs: scene.ms(500) },
    );
    const [done, broken] = await scene.claim(await scene.session(), 3);
    assert(done && broken);
    await scene.finish(completed(done), failed(broken));
    const expected: Record<ListName, string[]> = {
      waiting: ['waits'],
      prioritized: ['prior'],
      delayed: ['later'],
      active: ['runs'],
      completed: ['done'],
      failed: ['broken'],
      'waiting-children': [],
    };
    const { counts } = await scene.store.status(scene.queue);
    for (const [name, list] of Object.entries(expected) as [ListName, string[]][]) {
      assert.deepEqual(await scene.list(name), list, name);
      assert.equal(counts[name], list.length, name);
    }
    assert.equal((await scene.job('prior')).state, 'waiting', 'prioritized is a name, not a state');
  });

  test('an unknown queue reads as an empty queue', async (scene) => {
    const { counts, paused } = await scene.store.status(scene.queue);
    assert.deepEqual(counts, {
      waiting: 0,
      prioritized: 0,
      delayed: 0,
      active: 0,
      completed: 0,
      failed: 0,
      'waiting-children': 0,
    });
    assert.equal(paused, false);
    assert.deepEqual(await scene.list('waiting'), []);
    assert.deepEqual(await scene.store.sessions(scene.queue), []);
    assert.equal(await scene.lockOf('x'), undefined);
    assert.deepEqual(await scene.store.sweep(scene.queue, 5), { stalled: [], failed: [], more: false });
  });

  test('list returns waiting jobs in claim order or in reverse', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c', lifo: true });
    await scene.add({ id: 'p2', priority: 2 }, { id: 'p1', priority: 1 }, { id: 'p2-too', priority: 2 });
    assert.deepEqual(await scene.list('waiting', true), ['c', 'a', 'b']);
    assert.deepEqual(await scene.list('waiting', false), ['b', 'a', 'c']);
    assert.deepEqual(await scene.list('prioritized', true), ['p1', 'p2', 'p2-too']);
    assert.deepEqual(await scene.list('prioritized', false), ['p2-too', 'p2', 'p1']);
    assert.deepEqual(await scene.order(), ['c', 'a', 'b', 'p1', 'p2', 'p2-too']);
  });

  test('list returns delayed jobs by due time', async (scene) => {
    await scene.add(
      { id: 'b', delayMs: scene.ms(600) },
      { id: 'c', delayMs: scene.ms(700) },
      { id: 'a', delayMs: scene.ms(500) },
    );
    assert.deepEqual(await scene.list('delayed', true), ['a', 'b', 'c']);
    assert.deepEqual(await scene.list('delayed', false), ['c', 'b', 'a']);
  });

  test('list returns active and finished jobs in the order of entering that state', async (scene) => {
    await scene.add({ id: 'x', priority: 1 }, { id: 'y', priority: 2 }, { id: 'z', priority: 3 });
    const session = await scene.session();
    const jobs = [await scene.claimOne(session), await scene.claimOne(session), await scene.claimOne(session)];
    assert.deepEqual(await scene.list('active', true), ['x', 'y', 'z']);
    assert.deepEqual(await scene.list('active', false), ['z', 'y', 'x']);
    for (const index of [1, 2, 0]) await scene.finish(completed(nth(jobs, index)));
    assert.deepEqual(await scene.list('completed', true), ['y', 'z', 'x']);
    assert.deepEqual(await scene.list('completed', false), ['x', 'z', 'y']);
  });

  test('list ranges are inclusive, -1 is the last job, and positions outside are ignored', async (scene) => {
    const all = await scene.addMany(6);
    const read = async (start: number, end: number, asc = true) =>
      ids((await scene.store.jobs(scene.queue, { lists: ['waiting'], start, end, asc })).jobs);
    assert.deepEqual(await read(0, -1), all);
    assert.deepEqual(await read(0, 0), all.slice(0, 1));
    assert.deepEqual(await read(1, 3), all.slice(1, 4));
    assert.deepEqual(await read(4, 99), all.slice(4));
    assert.deepEqual(await read(2, -1), all.slice(2));
    assert.deepEqual(await read(6, 9), []);
    assert.deepEqual(await read(3, 2), []);
    assert.deepEqual(await read(0, 1, false), [nth(all, 5), nth(all, 4)]);
  });

  test('list returns several lists one after the other', async (scene) => {
    await scene.add({ id: 'runs' }, { id: 'waits' }, { id: 'later', delayMs: scene.ms(500) });
    await scene.claim(await scene.session(), 1);
    const lists: ListName[] = ['delayed', 'active', 'waiting'];
    assert.deepEqual(ids((await scene.store.jobs(scene.queue, { lists, start: 0, end: -1, asc: true })).jobs), [
      'later',
      'runs',
      'waits',
    ]);
  });

  test('list ranges are positions of each named list, not of all lists together', async (scene) => {
    await scene.add({ id: 'w0' }, { id: 'w1' }, { id: 'w2' }, { id: 'w3' });
    await scene.add(...[0, 1, 2, 3].map((n) => ({ id: `d${n}`, delayMs: scene.ms(500 + n) })));
    await scene.add({ id: 'p0', priority: 1 }, { id: 'p1', priority: 2 });
    const read = async (start: number, end: number, asc: boolean) => {
      const lists: ListName[] = ['waiting', 'delayed', 'prioritized'];
      return ids((await scene.store.jobs(scene.queue, { lists, start, end, asc })).jobs);
    };
    assert.deepEqual(await read(1, 2, true), ['w1', 'w2', 'd1', 'd2', 'p1']);
    assert.deepEqual(await read(2, -1, true), ['w2', 'w3', 'd2', 'd3']);
    assert.deepEqual(await read(0, 0, false), ['w3', 'd3', 'p1']);
    assert.deepEqual(await read(-1, -1, true), ['w3', 'd3', 'p1']);
  });

  test('locks returns the lock of a job while it is held, and undefined before and after', async (scene) => {
    const id = await scene.addOne();
    assert.equal(await scene.lockOf(id), undefined);
    const job = await scene.claimOne(await scene.session());
    const lock = await scene.lockOf(id);
    assert(lock && lock.since > 0 && lock.endsInMs > 0);
    await scene.finish(completed(job));
    assert.equal(await scene.lockOf(id), undefined);
    assert.equal(await scene.lockOf('ghost'), undefined);
  });

  test('locks returns one entry for each of many jobs, in order', async (scene) => {
    await scene.addMany(5);
    const [first, second] = await scene.claim(await scene.session(), 2);
    assert(first !== undefined && second !== undefined);
    const ghosts = Array.from({ length: 600 }, (_, n) => `ghost-${n}`);
    const asked = [second.id, ...ghosts, first.id, ...(await scene.list('waiting')), second.id];
    const locks = await scene.store.locks(scene.queue, { jobIds: asked });
    const held = new Map([first, second].map(({ id, token, fence }) => [id, [id, token, fence]]));
    assert.deepEqual(
      locks.map((lock) => lock && [lock.jobId, lock.token, lock.fence]),
      asked.map((id) => held.get(id)),
    );
    assert.deepEqual(await scene.store.locks(scene.queue, { jobIds: [] }), []);
  });

  test('queues lists queues with jobs or sessions in the order of their bytes, page by page', async (scene) => {
    const { store, queue } = scene;
    // UTF-16, the order of JavaScript, would put the last name before the fifth.
    const names = ['a', 'a-b', 'b', 'é', '\uff5e', '\u{1d52e}'].map((end) => `${queue}-${end}`);
    const [first, second, third, ...others] = names as [string, string, string, ...string[]];
    const session = await scene.at(first).session();
    for (const name of [...others, third, second].reverse()) await scene.at(name).add({});
    await store.closeSessions([{ queue: first, id: session }], 'closed');
    assert.deepEqual(await store.queues(3, `${queue}-`), [first, second, third]);
    assert.deepEqual(await store.queues(3, third), others);
    assert.deepEqual(await store.queues(0, `${queue}-`), []);
    const all: string[] = [];
    for (let page = await store.queues(500); page.length > 0; page = await store.queues(500, all.at(-1))) all.push(...page);
    assert.deepEqual(
      all.filter((name) => name.startsWith(`${queue}-`)),
      names,
    );
  });

  test('queues lists a queue whose first job has an id of its own', async (scene) => {
    await scene.add({ id: 'own' });
    assert.deepEqual(await scene.store.queues(1, scene.queue.slice(0, -1)), [scene.queue]);
  });

  test('read verbs change nothing', async (scene) => {
    const { session, job } = await scene.running();
    await scene.add({}, { delayMs: scene.ms(500) });
    const before = await scene.snapshot(job.id);
    await lookAtEverything(scene, session, job.id);
    assert.deepEqual(await scene.snapshot(job.id), before);
  });

  test.needs('control').shared('two connections read the same state', async (scene) => {
    const { job } = await scene.running();
    await scene.add({}, { priority: 4 }, { delayMs: scene.ms(500) });
    await scene.store.configure(scene.queue, { paused: true });
    const peer = await scene.peer();
    assert.deepEqual(await peer.snapshot(job.id), await scene.snapshot(job.id));
  });
}

async function lookAtEverything(scene: Scene, session: string, jobId: string): Promise<void> {
  const { store, queue } = scene;
  const lists: ListName[] = ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed'];
  await store.queues(10);
  await store.jobs(queue, [jobId]);
  await store.jobs(queue, { lists, start: 0, end: -1, asc: false });
  await store.status(queue);
  if (scene.has('control')) await store.logs(queue, jobId, { start: 0, end: -1, asc: true });
  await store.events(queue, 0, 10);
  await store.locks(queue, { jobIds: [jobId] });
  await store.sessions(queue);
  await store.locks(queue, { session });
}
