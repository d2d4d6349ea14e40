// Facet: opening, closing, and the data after the store is opened again.
import assert from 'node:assert/strict';
import type { Store } from '../../store/contract/index.js';
import { ids, only } from './expect.js';
import type { Level } from './levels.js';
import { completed, failed, newJob, newSession, released } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function closing(test: Test): void {
  test('open is idempotent', async (scene) => {
    await scene.add({});
    await scene.store.open();
    assert.equal((await scene.list('waiting')).length, 1);
  });

  test('close is idempotent', async (scene) => {
    await scene.store.close();
    await scene.store.close();
  });

  test('close carries out the calls that came before it', async (scene) => {
    const added = [scene.add({}), scene.add({}), scene.add({})];
    const closed = scene.store.close();
    assert.deepEqual((await Promise.all(added)).flat(), ['1', '2', '3']);
    await closed;
  });

  test('every verb rejects with STORE_CLOSED after close', async (scene) => {
    const { job } = await scene.running();
    await scene.store.close();
    for (const [verb, call] of Object.entries(verbsOf(scene, job.id))) {
      await assert.rejects(call(scene.store), { code: 'STORE_CLOSED' }, verb);
    }
  });

  test('describe returns plain data that can be sent to a thread', async (scene) => {
    const descriptor = scene.store.describe();
    assert.deepEqual(structuredClone(descriptor), descriptor);
    assert.deepEqual(JSON.parse(JSON.stringify(descriptor ?? null)), descriptor ?? null);
  });

  test.durable('jobs, logs, locks, sessions and pause survive when the store is opened again', async (scene) => {
    await scene.add({ id: 'done' }, { id: 'broken' }, { id: 'runs' }, { id: 'waits' }, { id: 'first', lifo: true, priority: 2 });
    await scene.add({ id: 'late', delayMs: scene.ms(5_000) });
    const session = await scene.session();
    const [done, broken, runs] = await scene.claim(session, 3);
    assert(done && broken && runs);
    if (scene.has('control')) await scene.store.write(scene.queue, [{ jobId: 'runs', kind: 'log', row: 'kept' }]);
    await scene.finish(completed(done), failed(broken));
    if (scene.has('control')) await scene.store.configure(scene.queue, { paused: true });
    const seen = ['done', 'broken', 'runs', 'waits', 'first', 'late'];
    const before = await Promise.all(seen.map((id) => scene.snapshot(id)));
    const later = await scene.reopen();
    assert.deepEqual(await Promise.all(seen.map((id) => later.snapshot(id))), before);
    assert.deepEqual(ids(await later.store.sessions(scene.queue)), [session]);
    assert.equal(only(await later.store.locks(scene.queue, { session })).token, runs.token);
    assert.deepEqual(await later.settle(completed(runs)), ['done']);
  });

  test.durable('job ids, event ids, order and limits continue when the store is opened again', async (scene) => {
    await scene.add({}, {});
    const job = await scene.claimOne(await scene.session());
    await scene.finish(released(job));
    if (scene.has('control')) await scene.store.configure(scene.queue, { blockedMs: scene.ms(5_000) });
    const end = await scene.lastEvent();
    const later = await scene.reopen();
    assert.equal((await later.store.status(scene.queue)).blockedMs !== undefined, scene.has('control'));
    if (scene.has('control')) await later.store.configure(scene.queue, { blockedMs: 0 });
    assert.deepEqual(await later.add({}), ['3']);
    assert.equal((await later.events(end))[0]?.id, end + 1);
    assert.deepEqual(await later.order(), ['1', '2', '3']);
  });

  test.durable('a session survives when the store is opened again, and expires without renewal', async (scene) => {
    const { session, job } = await scene.running({}, { durationMs: scene.ms(12) });
    const later = await scene.reopen();
    assert.equal(only(await later.store.renew([{ queue: scene.queue, id: session, acked: 0 }])).alive, true);
    await later.pass(13);
    assert.deepEqual((await later.sweep()).stalled, [job.id]);
  });
}

type VerbCalls = Record<string, (store: Store) => Promise<unknown>>;

/** Returns a call of every verb of the levels under test. */
function verbsOf(scene: Scene, id: string): VerbCalls {
  const verbs = everyVerb(scene, id);
  return Object.assign({}, ...(Object.keys(verbs) as Level[]).filter((level) => scene.has(level)).map((level) => verbs[level]));
}

function everyVerb({ queue }: Scene, id: string): Partial<Record<Level, VerbCalls>> {
  const call = { caller: 'late', seq: 1 };
  const selection = { lists: ['completed' as const], limit: 1 };
  return {
    core: {
      add: (store) => store.add(queue, [newJob()], call),
      claim: (store) => store.claim(queue, { session: 's', seq: 1, count: 1 }),
      settle: (store) => store.settle(queue, [{ kind: 'release', jobId: id, token: 't' }]),
      openSession: (store) => store.openSession(newSession(queue, 1_000, {})),
      renew: (store) => store.renew([{ queue, id: 's', acked: 0 }]),
      closeSessions: (store) => store.closeSessions([{ queue, id: 's' }], 'closed'),
      sweep: (store) => store.sweep(queue, 1),
      'jobs by id': (store) => store.jobs(queue, [id]),
      'jobs of a list': (store) => store.jobs(queue, { lists: ['waiting'], start: 0, end: -1, asc: true }),
      status: (store) => store.status(queue),
      events: (store) => store.events(queue, 0, 1),
      'locks of jobs': (store) => store.locks(queue, { jobIds: [id] }),
      'locks of a session': (store) => store.locks(queue, { session: 's' }),
      sessions: (store) => store.sessions(queue),
    },
    inspecting: {
      queues: (store) => store.queues(1),
    },
    hints: {
      probe: (store) => store.probe(queue),
      checkSessions: (store) => store.checkSessions([]),
    },
    'timed-locks': {
      extend: (store) => store.extend(queue, [{ jobId: id, token: 't', durationMs: 1 }]),
    },
    control: {
      configure: (store) => store.configure(queue, { paused: true, blockedMs: 1 }),
      write: (store) => store.write(queue, [{ jobId: id, kind: 'data', data: '1' }]),
      forget: (store) => store.forget(queue, { all: true }),
      logs: (store) => store.logs(queue, id, { start: 0, end: -1, asc: true }),
    },
    caps: {
      'configure of a cap': (store) => store.configure(queue, { cap: null }),
    },
    changing: {
      change: (store) => store.change(queue, [id], { kind: 'promote' }),
      'change by selection': (store) => store.change(queue, selection, { kind: 'remove' }),
    },
    'named-locks': {
      'locks with names': (store) => store.locks(queue, { names: ['x'] }),
    },
  };
}
