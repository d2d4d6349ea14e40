// Facet: what becomes of a schedule when its next job is claimed, changed, ends or is lost.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import type { Change } from '../../store/contract/index.js';
import { changedAll, ids, only } from './expect.js';
import { completed, delayed, failed, released, retried, retryFrom, returned } from './samples.js';
import type { Scene } from './scene.js';
import { countOf, done, eventsSince, ID, jobId, owing, putOf, recordOf, ruled, schedule, schedules, slot } from './schedules.js';
import type { Body, Test } from './suite.js';

type Define = (title: string, body: Body) => void;

export function scheduleRuns(test: Test): void {
  claims(ruled(test));
  claimsById(ruled(test.needs('claims-by-id')));
  undone(ruled(test), ruled(test.needs('hints')));
  changes(ruled(test.needs('changing')));
  runs(ruled(test), ruled(test.needs('changing')));
  serialRuns(ruled(test), ruled(test.needs('changing')));
  serialPuts(ruled(test));
  sweeps(ruled(test), ruled(test.needs('control')));
  forgetting(ruled(test.needs('control')));
}

function claims(test: Define): void {
  test('a claim of the next job makes the schedule owing in the same step, and returns it as a debt', async (scene) => {
    const { version } = await done(scene, putOf());
    const { now } = await schedules(scene, { ids: [] });
    const job = await scene.claimOne(await scene.session());
    const record = await recordOf(scene);
    assert.deepEqual([record.state, record.version, record.at, record.count], ['owing', version + 1, slot(1).at, 1]);
    assert.equal(record.nextJobId, undefined);
    const { now: told, ...debt } = job.debt ?? assert.fail('the claimed job carries the debt');
    assert.deepEqual(debt, record);
    assert(told >= now && told <= (await schedules(scene, { ids: [] })).now, `the clock of the store, not ${told}`);
    assert.equal(job.scheduleId, ID);
  });

  test('a claim within a settle makes the schedule owing too', async (scene) => {
    const { session, job } = await scene.running();
    await done(scene, putOf());
    const call = scene.call(session);
    const { claimed } = await scene.store.settle(scene.queue, [completed(job)], call, { session, seq: call.seq, count: 1 });
    assert.equal(only(claimed?.jobs ?? []).debt?.id, ID);
    assert.equal((await recordOf(scene)).state, 'owing');
  });

  test('a claim of several next jobs carries the debt of each', async (scene) => {
    for (const id of ['a', 'b']) await done(scene, putOf({ id, next: slot(1, { id }) }));
    await scene.add({ id: 'plain' });
    const jobs = await scene.claim(await scene.session(), 3);
    assert.deepEqual(
      jobs.map(({ debt }) => debt?.id),
      ['a', 'b', undefined],
    );
  });

  test('a repeated claim returns the same job and changes the schedule no further', async (scene) => {
    await done(scene, putOf());
    const session = await scene.session();
    const request = scene.request(session, 1);
    const [first] = (await scene.store.claim(scene.queue, request)).jobs;
    const record = await recordOf(scene);
    const again = await scene.store.claim(scene.queue, request);
    assert.equal(only(again.jobs).token, first?.token);
    assert.deepEqual(await recordOf(scene), record);
    await done(scene, { kind: 'advance', id: ID, version: record.version, next: slot(2, { dueInMs: scene.ms(1_000) }) });
    await scene.store.claim(scene.queue, request);
    assert.equal((await recordOf(scene)).state, 'running');
  });
}

function claimsById(test: Define): void {
  test('a claim by id of the next job makes the schedule owing', async (scene) => {
    await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(5) }) }));
    const session = await scene.session();
    assert.deepEqual(await scene.claim(session, 1, { jobIds: [jobId(1)] }), [], 'not due yet');
    assert.equal((await recordOf(scene)).state, 'running');
    await scene.pass(6);
    const job = await scene.claimOne(session, { jobIds: [jobId(1)] });
    assert.equal(job.debt?.id, ID);
    assert.equal((await recordOf(scene)).state, 'owing');
  });
}

function undone(test: Define, hinted: Define): void {
  test('claims say undone while a schedule is owing that they do not carry themselves', async (scene) => {
    const session = await scene.session();
    await done(scene, putOf());
    assert.equal((await scene.tryClaim(session, 0)).undone, undefined, 'running');
    assert.equal((await scene.tryClaim(session)).undone, undefined, 'the claim carries the debt');
    assert.equal((await scene.tryClaim(session)).undone, true, 'another claim learns of it');
    await done(scene, putOf({ id: 'second', next: slot(1, { id: 'second' }) }));
    const both = await scene.tryClaim(session);
    assert.deepEqual([only(both.jobs).debt?.id, both.undone], ['second', true], 'one debt is carried, the other is not');
    for (const { id, version } of (await schedules(scene, { owing: true, limit: 5 })).records)
      await done(scene, { kind: 'advance', id, version, next: slot(2, { id, dueInMs: scene.ms(1_000) }) });
    assert.equal((await scene.tryClaim(session)).undone, undefined);
  });

  test('a claim in a settle says undone after the end of a serial run', async (scene) => {
    await done(scene, putOf({ serial: true }));
    const session = await scene.session();
    const job = await scene.claimOne(session);
    const call = scene.call(session);
    const reply = await scene.store.settle(scene.queue, [completed(job)], call, { session, seq: call.seq, count: 1 });
    assert.equal(reply.claimed?.undone, true);
  });

  hinted('a probe says undone while a schedule is owing', async (scene) => {
    assert.equal((await scene.store.probe(scene.queue)).undone, undefined);
    const { version } = await owing(scene);
    assert.equal((await scene.store.probe(scene.queue)).undone, true);
    await done(scene, { kind: 'advance', id: ID, version, next: slot(2) });
    assert.equal((await scene.store.probe(scene.queue)).undone, undefined);
  });
}

function changes(test: Define): void {
  const moves: Record<string, { change: Change; list: 'waiting' | 'delayed' | 'prioritized' }> = {
    promote: { change: { kind: 'promote' }, list: 'waiting' },
    delay: { change: { kind: 'delay', delayMs: 3_600_000 }, list: 'delayed' },
    priority: { change: { kind: 'priority', priority: 4, lifo: false }, list: 'delayed' },
  };
  for (const [kind, { change, list }] of Object.entries(moves)) {
    test(`${kind} changes a next job and leaves the schedule as it is`, async (scene) => {
      const record = await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(1_000) }) }));
      assert.deepEqual(await scene.store.change(scene.queue, [jobId(1)], change), changedAll(jobId(1)));
      assert.deepEqual(await scene.list(list), [jobId(1)]);
      assert.deepEqual(await recordOf(scene), record);
    });
  }

  test('priority moves a waiting next job, whose claim still carries the debt', async (scene) => {
    await done(scene, putOf());
    await scene.store.change(scene.queue, [jobId(1)], { kind: 'priority', priority: 4, lifo: true });
    assert.deepEqual(await scene.list('prioritized'), [jobId(1)]);
    assert.equal((await scene.claimOne(await scene.session())).debt?.id, ID);
  });

  test('promote by selection moves a next job, and its claim leads on', async (scene) => {
    await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(1_000) }) }));
    const { changed } = await scene.store.change(scene.queue, { lists: ['delayed'], limit: 10 }, { kind: 'promote' });
    assert.deepEqual(changed, [jobId(1)]);
    assert.equal((await scene.claimOne(await scene.session())).debt?.id, ID);
  });

  for (const dueIn of [0, 1_000]) {
    const list = dueIn === 0 ? 'waiting' : 'delayed';
    test(`a next job that is ${list} is not removed by its id`, async (scene) => {
      const record = await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(dueIn) }) }));
      await scene.add({ id: 'other', delayMs: scene.ms(dueIn) });
      const after = await scene.lastEvent();
      assert.deepEqual(await scene.store.change(scene.queue, [jobId(1), 'other'], { kind: 'remove' }), {
        changed: ['other'],
        others: [{ jobId: jobId(1), status: 'scheduled' }],
        more: false,
      });
      assert.deepEqual(await eventsSince(scene, after), [`removed other ${list}`]);
      assert.deepEqual(await recordOf(scene), record);
    });

    test(`a removal by selection passes over a next job that is ${list}, and its limit too`, async (scene) => {
      const record = await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(dueIn) }) }));
      await scene.add({ id: 'a', delayMs: scene.ms(dueIn) }, { id: 'b', delayMs: scene.ms(dueIn) });
      const selection = { lists: [list], limit: 2 } as const;
      const { changed } = await scene.store.change(scene.queue, { ...selection, lists: [list] }, { kind: 'remove' });
      assert.deepEqual(changed, ['a', 'b']);
      const again = await scene.store.change(scene.queue, { ...selection, lists: [list] }, { kind: 'remove' });
      assert.deepEqual(again, { changed: [], others: [], more: false });
      assert.deepEqual(await scene.list(list), [jobId(1)]);
      assert.deepEqual(await recordOf(scene), record);
    });
  }

  test('a run is removed as any job once it is no longer the next job', async (scene) => {
    await done(scene, putOf());
    const job = await scene.claimOne(await scene.session());
    const remove = (): Promise<unknown> => scene.store.change(scene.queue, [jobId(1)], { kind: 'remove' });
    assert.deepEqual(await remove(), { changed: [], others: [{ jobId: jobId(1), status: 'locked' }], more: false });
    await scene.finish(retried(job));
    assert.deepEqual(await remove(), changedAll(jobId(1)));
    assert.equal((await recordOf(scene)).state, 'owing');
  });
}

function runs(test: Define, changing: Define): void {
  const ways: Record<string, (scene: Scene, job: ClaimedJob, session: string) => Promise<unknown>> = {
    completes: (scene, job) => scene.finish(completed(job)),
    'is removed on finishing': (scene, job) => scene.finish(completed(job, { count: 0 })),
    'fails for good': (scene, job) => scene.finish(failed(job)),
    'is retried': (scene, job) => scene.finish(retried(job)),
    'is retried with a delay': (scene, job) => scene.finish(retried(job, scene.ms(1_000))),
    'is delayed': (scene, job) => scene.finish(delayed(job, scene.ms(1_000))),
    'is released': (scene, job) => scene.finish(released(job)),
    'is handed back': (scene, job) => scene.finish(returned(job)),
    'stalls in a crashed session': (scene, _, session) =>
      scene.store.closeSessions([{ queue: scene.queue, id: session }], 'crashed'),
  };
  for (const [how, lead] of Object.entries(ways)) {
    test(`a schedule does not change when a run of it ${how}`, async (scene) => {
      await done(scene, putOf());
      const session = await scene.session({ maxStalls: 0 });
      const job = await scene.claimOne(session);
      const before = await recordOf(scene);
      const record = await done(scene, { kind: 'advance', id: ID, version: before.version, next: slot(2, { priority: 9 }) });
      await lead(scene, job, session);
      assert.deepEqual(await recordOf(scene), record);
      const claimed = await scene.claim(await scene.session(), 10);
      assert.deepEqual(ids(claimed.filter(({ debt }) => debt !== undefined)), [jobId(2)], 'the run carries no debt again');
    });
  }

  changing('a finished run that is retried is an ordinary job', async (scene) => {
    await done(scene, putOf());
    const job = await scene.claimOne(await scene.session());
    await scene.finish(failed(job));
    const record = await recordOf(scene);
    await scene.store.change(scene.queue, [job.id], retryFrom('failed'));
    assert.equal((await scene.claimOne(await scene.session())).debt, undefined);
    assert.deepEqual(await recordOf(scene), record);
  });
}

/** Makes a serial schedule and claims its next job. */
async function serialRun(scene: Scene, maxStalls = 1): Promise<{ job: ClaimedJob; session: string; version: number }> {
  await done(scene, putOf({ serial: true }));
  const session = await scene.briefSession({ maxStalls });
  const job = await scene.claimOne(session);
  assert.equal(job.debt, undefined);
  const { state, nextJobId, version } = await recordOf(scene);
  assert.deepEqual([state, nextJobId], ['running', jobId(1)], 'the job that runs stays the next job');
  return { job, session, version };
}

function serialRuns(test: Define, changing: Define): void {
  const ends: Record<string, (scene: Scene, job: ClaimedJob, session: string) => Promise<unknown>> = {
    completes: (scene, job) => scene.finish(completed(job)),
    'is removed on finishing': (scene, job) => scene.finish(completed(job, { count: 0 })),
    'fails for good': (scene, job) => scene.finish(failed(job)),
    'fails in a crashed session': (scene, _, session) =>
      scene.store.closeSessions([{ queue: scene.queue, id: session }], 'crashed'),
    'fails by a sweep': async (scene) => {
      await scene.perish();
      assert.deepEqual(await scene.sweep(), { stalled: [], failed: [jobId(1)] });
    },
  };
  for (const [how, end] of Object.entries(ends)) {
    test(`a serial schedule is owing when its run ${how}`, async (scene) => {
      const { job, session, version } = await serialRun(scene, 0);
      await end(scene, job, session);
      const record = await recordOf(scene);
      assert.deepEqual([record.state, record.version, record.nextJobId], ['owing', version + 1, undefined]);
      assert.equal((await done(scene, { kind: 'advance', id: ID, version: version + 1, next: slot(2) })).count, 2);
    });
  }

  const returns: Record<string, (scene: Scene, job: ClaimedJob, session: string) => Promise<unknown>> = {
    'is retried': (scene, job) => scene.finish(retried(job)),
    'is retried with a delay': (scene, job) => scene.finish(retried(job, scene.ms(2))),
    'is delayed': (scene, job) => scene.finish(delayed(job, scene.ms(2))),
    'is released': (scene, job) => scene.finish(released(job)),
    'is handed back': (scene, job) => scene.finish(returned(job)),
    'is handed back by its closed session': (scene, _, session) =>
      scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed'),
    stalls: async (scene) => {
      await scene.perish();
      assert.deepEqual(await scene.sweep(), { stalled: [jobId(1)], failed: [] });
    },
  };
  for (const [how, lead] of Object.entries(returns)) {
    test(`a serial schedule goes on with the same job when its run ${how}`, async (scene) => {
      const { job, session, version } = await serialRun(scene);
      const record = await recordOf(scene);
      await lead(scene, job, session);
      assert.deepEqual(await recordOf(scene), record);
      await scene.pass(3);
      const again = await scene.claimOne(await scene.session());
      assert.deepEqual([again.id, again.debt], [jobId(1), undefined]);
      await scene.finish(completed(again));
      const { state, version: ended } = await recordOf(scene);
      assert.deepEqual([state, ended], ['owing', version + 1]);
    });
  }

  changing('the run of a serial schedule is not removed, running or between two runs', async (scene) => {
    const { job } = await serialRun(scene);
    const remove = (): Promise<unknown> => scene.store.change(scene.queue, [jobId(1)], { kind: 'remove' });
    assert.deepEqual(await remove(), { changed: [], others: [{ jobId: jobId(1), status: 'locked' }], more: false });
    await scene.finish(retried(job, scene.ms(1_000)));
    assert.deepEqual(await remove(), { changed: [], others: [{ jobId: jobId(1), status: 'scheduled' }], more: false });
    const selected = await scene.store.change(scene.queue, { lists: ['delayed'], limit: 5 }, { kind: 'remove' });
    assert.deepEqual(selected.changed, []);
  });

  changing('a revoked run of a serial schedule stays its next job', async (scene) => {
    await serialRun(scene);
    await scene.store.change(scene.queue, [jobId(1)], { kind: 'revoke', reason: 'test' });
    const { state, nextJobId } = await recordOf(scene);
    assert.deepEqual([state, nextJobId], ['running', jobId(1)]);
  });

  changing('a finished run of a serial schedule is an ordinary job, also when it is removed or retried', async (scene) => {
    const { job } = await serialRun(scene);
    await scene.finish(failed(job));
    const record = await recordOf(scene);
    await scene.store.change(scene.queue, [job.id], retryFrom('failed'));
    await scene.finish(completed(await scene.claimOne(await scene.session())));
    assert.deepEqual(await scene.store.change(scene.queue, [job.id], { kind: 'remove' }), changedAll(job.id));
    assert.deepEqual(await recordOf(scene), record);
  });

  test('a repeated settle of a serial run changes the schedule once', async (scene) => {
    await done(scene, putOf({ serial: true }));
    const session = await scene.session();
    const job = await scene.claimOne(session);
    const call = scene.call(session);
    await scene.store.settle(scene.queue, [completed(job)], call);
    const { version } = await recordOf(scene);
    const record = await done(scene, { kind: 'advance', id: ID, version, next: slot(2) });
    assert.deepEqual((await scene.store.settle(scene.queue, [completed(job)], call)).results, ['done']);
    assert.deepEqual(await recordOf(scene), record);
  });
}

function serialPuts(test: Define): void {
  test('put replaces the spec of a serial schedule whose job runs, and makes no second job', async (scene) => {
    const { job, version } = await serialRun(scene);
    const record = await done(scene, putOf({ version, spec: 'new', serial: true, next: slot(2) }));
    assert.deepEqual([record.spec, record.nextJobId, record.at, record.count], ['new', jobId(1), slot(1).at, 1]);
    assert.equal(await scene.stateOf(jobId(2)), 'missing');
    await scene.finish(completed(job));
    assert.equal((await recordOf(scene)).state, 'owing');
  });

  test('put makes no second job while the job of a serial schedule is between two runs', async (scene) => {
    const { job, version } = await serialRun(scene);
    await scene.finish(retried(job, scene.ms(1_000)));
    assert.equal((await done(scene, putOf({ version, serial: true, next: slot(2) }))).nextJobId, jobId(1));
    assert.equal(await scene.stateOf(jobId(2)), 'missing');
  });

  test('put replaces the job of a serial schedule that was handed back without a run', async (scene) => {
    const { job, version } = await serialRun(scene);
    await scene.finish(returned(job));
    assert.equal((await done(scene, putOf({ version, serial: true, next: slot(2) }))).nextJobId, jobId(2));
    assert.deepEqual(await scene.list('waiting'), [jobId(2)]);
  });

  test('put that is no longer serial leaves the run as an ordinary job', async (scene) => {
    const { job, version } = await serialRun(scene);
    const record = await done(scene, putOf({ version, next: slot(2, { dueInMs: scene.ms(1_000) }) }));
    assert.deepEqual([record.serial, record.nextJobId], [false, jobId(2)]);
    await scene.finish(completed(job));
    assert.deepEqual(await recordOf(scene), record);
  });

  test('pause leaves the run of a serial schedule, whose end is then no debt', async (scene) => {
    const { job, version } = await serialRun(scene);
    const paused = await done(scene, { kind: 'pause', id: ID, version });
    assert.deepEqual([paused.state, paused.nextJobId, paused.count], ['paused', jobId(1), 1]);
    const resumed = await done(scene, putOf({ version: version + 1, serial: true, next: slot(2) }));
    assert.deepEqual([resumed.state, resumed.nextJobId], ['running', jobId(1)]);
    await done(scene, { kind: 'pause', id: ID, version: version + 2 });
    await scene.finish(completed(job));
    const { state, nextJobId, version: last } = await recordOf(scene);
    assert.deepEqual([state, nextJobId], ['paused', undefined]);
    assert.equal((await done(scene, putOf({ version: last, serial: true, next: slot(2) }))).nextJobId, jobId(2));
  });

  test('remove leaves the run of a serial schedule as an ordinary job', async (scene) => {
    const { job, version } = await serialRun(scene);
    assert.deepEqual(await schedule(scene, { kind: 'remove', id: ID, version }), { status: 'done' });
    await scene.finish(completed(job));
    assert.equal(await countOf(scene), 0);
    await done(scene, putOf({ next: slot(2) }));
  });
}

/** The slots of these tests passed decades ago. */
function sweeps(test: Define, control: Define): void {
  test('a sweep long after the slot leaves a schedule whose next job is delayed', async (scene) => {
    const record = await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(1_000) }) }));
    await scene.sweep();
    assert.deepEqual(await recordOf(scene), record);
  });

  control('a sweep long after the slot leaves a schedule whose next job waits in a paused queue', async (scene) => {
    await scene.store.configure(scene.queue, { paused: true });
    const record = await done(scene, putOf());
    await scene.sweep();
    assert.deepEqual(await recordOf(scene), record);
  });

  test('a sweep long after the slot leaves a serial schedule whose job runs', async (scene) => {
    await done(scene, putOf({ serial: true }));
    await scene.claimOne(await scene.session());
    const record = await recordOf(scene);
    await scene.sweep();
    assert.deepEqual(await recordOf(scene), record);
  });
}

function forgetting(test: Define): void {
  test('forget deletes the schedules of an emptied queue, with their next jobs', async (scene) => {
    await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(1_000) }) }));
    await done(scene, putOf({ id: 'waits', next: slot(1, { id: 'waits' }) }));
    await owing(scene, { id: 'owes', next: slot(1, { id: 'owes', lifo: true }) });
    await scene.store.forget(scene.queue, { all: true });
    assert.equal(await countOf(scene), 0);
    assert.deepEqual([await scene.list('delayed'), await scene.list('waiting')], [[], []]);
    assert.equal((await scene.tryClaim(await scene.session())).undone, undefined);
    await done(scene, putOf());
  });
}
