// The store does the work and the answer never arrives. Nothing may be orphaned, doubled, or reported lost.
import { describe, expect, test } from 'vitest';
import { ENGINES, messagesOf, next, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';

describe.each(ENGINES)('lost replies on %s', (engine) => {
  test('S4-15 the reply of a claim is lost: the same worker runs the job, once, while its session lives on', async () => {
    const { store, add, reaches, worker, inner, queue } = await scene(engine);
    const lost = store.on('claim', { fault: 'drop-reply', times: 1, when: (_, { count }) => count > 0 });
    const id = await add();
    let runs = 0;
    const { errors } = worker(() => ++runs);
    const record = await reaches(id, 'completed');
    expect(lost.struck).toBe(1);
    expect(runs).toBe(1);
    expect(record).toMatchObject({ attemptsStarted: 1, attemptsMade: 1, stalledCounter: 0 });
    expect(messagesOf(errors, 'reply was dropped')).toHaveLength(1);
    expect(errors).toHaveLength(1);
    expect(await inner.sessions(queue)).toHaveLength(1);
  });

  test('S4-15 the reply of a claim is lost many times in a row: still one run of each job', async () => {
    const { store, add, reaches, worker } = await scene(engine);
    store.on('claim', { fault: 'drop-reply', times: 4 });
    const ids = [await add(), await add(), await add()];
    const ran: string[] = [];
    worker((job) => ran.push(job.id), { concurrency: 3 });
    for (const id of ids) expect(await reaches(id, 'completed')).toMatchObject({ attemptsStarted: 1 });
    expect(ran.toSorted()).toEqual(ids.toSorted());
  });

  test.each([
    ['kept', { removeOnComplete: false }],
    ['removed on completion', { removeOnComplete: true }],
  ])(
    'S4-15 the reply of a finish is lost, the job is %s: completed once, not reported lost, not run again',
    async (_, options) => {
      const { store, add, worker, record } = await scene(engine);
      store.on('settle', { fault: 'drop-reply', times: 2 });
      const id = await add(options);
      let runs = 0;
      const { worker: watched, errors } = worker(() => `run ${++runs}`);
      const [job, result] = await next(watched, 'completed');
      expect(job).toMatchObject({ id });
      expect(result).toBe('run 1');
      await watched.close();
      expect(runs).toBe(1);
      // Two tries, one outage.
      expect(messagesOf(errors, 'reply was dropped')).toHaveLength(1);
      expect(errors).toHaveLength(1);
      const kept = await record(id);
      if (options.removeOnComplete) expect(kept).toBeUndefined();
      else expect(kept).toMatchObject({ state: 'completed', attemptsMade: 1, attemptsStarted: 1, returnvalue: '"run 1"' });
    },
  );

  test('S4-15 the reply of a finish that brought the next job is lost: both jobs run once', async () => {
    const { store, add, reaches, worker } = await scene(engine);
    store.on('settle', { fault: 'drop-reply', times: 1, when: (_queue, _outcomes, _call, claim) => claim !== undefined });
    const first = await add();
    const second = await add();
    const ran: string[] = [];
    worker((job) => ran.push(job.id));
    await reaches(first, 'completed');
    expect(await reaches(second, 'completed')).toMatchObject({ attemptsStarted: 1, stalledCounter: 0 });
    expect(ran).toEqual([first, second]);
  });

  test('a failure whose reply is lost counts one attempt', async () => {
    const { store, add, reaches, worker } = await scene(engine);
    store.on('settle', { fault: 'drop-reply', times: 1 });
    const id = await add({ attempts: 2 });
    let runs = 0;
    worker(() => {
      runs += 1;
      throw new Error(`failure ${runs}`);
    });
    expect(await reaches(id, 'failed')).toMatchObject({ attemptsMade: 2, attemptsStarted: 2, failedReason: 'failure 2' });
    expect(runs).toBe(2);
  });

  test('the reply of opening a session is lost: another is opened, jobs run, and the first lapses with nothing in it', async () => {
    const { store, add, reaches, worker, inner, queue } = await scene(engine);
    store.on('openSession', { fault: 'drop-reply', times: 1 });
    const id = await add();
    worker(() => 'done', { lockDuration: paced(300), stalledInterval: 50 });
    expect(await reaches(id, 'completed')).toMatchObject({ stalledCounter: 0 });
    await until('the unknown session to lapse', async () => (await inner.sessions(queue)).length === 1);
  });

  test('the reply of a renewal is lost: an error is emitted, and the next renewal keeps the job', async () => {
    const { store, add, reaches, worker } = await scene(engine);
    store.on('renew', { fault: 'drop-reply', times: 2 });
    const id = await add();
    const renewed = newGate();
    const { worker: watched, errors } = worker(() => renewed.opened, {
      lockDuration: paced(400),
      lockRenewTime: paced(60),
      stalledInterval: 50,
    });
    watched.once('locksRenewed', () => renewed.open());
    expect(await reaches(id, 'completed')).toMatchObject({ attemptsStarted: 1, stalledCounter: 0 });
    expect(messagesOf(errors, 'reply was dropped')).toHaveLength(2);
    expect(messagesOf(errors, 'could not renew lock')).toHaveLength(0);
  });

  test('the reply of a finish is lost and the session swept before the next try: the job stays done and is not run again', async () => {
    const { store, add, worker, inner, queue, record } = await scene(engine);
    // Where two calls may be in flight, each finish has its own, and the other one is answered.
    const when = (_: string, __: unknown, call?: { lane?: number }): boolean => (call?.lane ?? 0) === 0;
    store.on('settle', { fault: 'drop-reply', times: 1, when });
    const repeated = store.on('settle', { fault: 'hang', times: 1, after: 1, when });
    const ids = [await add({ removeOnComplete: true }), await add()];
    let runs = 0;
    const { worker: watched, errors } = worker(() => ++runs, {
      concurrency: 2,
      lockDuration: paced(200),
      skipStalledCheck: true,
    });
    const told: string[] = [];
    watched.on('completed', (job) => told.push(job.id));
    await until('the second try', () => repeated.holding > 0);
    store.on('renew', { fault: 'fail' });
    await until('the session to be reaped', async () => {
      await inner.sweep(queue, 10);
      return (await inner.sessions(queue)).length === 0;
    });
    store.clear();
    await until('both to be told', () => told.length === 2);
    expect(told.toSorted()).toEqual(ids);
    expect(runs).toBe(2);
    expect(messagesOf(errors, 'Could not settle')).toEqual([]);
    expect(await record(ids[1] ?? '')).toMatchObject({ state: 'completed', stalledCounter: 0, attemptsStarted: 1 });
  });

  test('the reply of a claim is lost and the session swept before the next try: the job is recovered and run once', async () => {
    const { store, add, worker, inner, queue, reaches } = await scene(engine);
    const claiming = (_: string, { count }: { count: number }): boolean => count > 0;
    store.on('claim', { fault: 'drop-reply', times: 1, when: claiming });
    const repeated = store.on('claim', { fault: 'hang', times: 1, after: 1, when: claiming });
    const id = await add();
    let runs = 0;
    worker(() => ++runs, { lockDuration: paced(200), skipStalledCheck: true });
    await until('the second try', () => repeated.holding > 0);
    store.on('renew', { fault: 'fail' });
    await until('the session to be reaped', async () => (await inner.sweep(queue, 10)).stalled.length > 0);
    store.clear();
    expect(await reaches(id, 'completed')).toMatchObject({ stalledCounter: 1, attemptsStarted: 2 });
    expect(runs).toBe(1);
  });

  test('an operator takes a lock away while its claim is in flight: nothing runs under it', async () => {
    const { store, add, worker, inner, queue, reaches } = await scene(engine);
    const held = store.on('claim', { fault: 'hold-reply', times: 1, when: (_, { count }) => count > 0 });
    const id = await add();
    const fences: number[] = [];
    const { errors } = worker((job) => fences.push(job.lock.fence), { lockDuration: paced(2000), lockRenewTime: paced(30) });
    await until('the claim to be held', () => held.holding > 0);
    const first = (await inner.locks(queue, { jobIds: [id] }))[0]?.fence;
    await inner.change(queue, [id], { kind: 'revoke', reason: 'an operator' });
    await store.answered('renew');
    await store.answered('renew');
    held.release();
    await reaches(id, 'completed');
    expect(fences).toHaveLength(1);
    expect(fences[0]).toBeGreaterThan(first ?? Number.POSITIVE_INFINITY);
    expect(messagesOf(errors, `Job ${id} was not started`)).toHaveLength(1);
    expect(errors).toHaveLength(1);
  });

  test('negative control: an owner that never asks again leaves the claimed job orphaned while its session lives on', async () => {
    const { store, add, inner, queue } = await scene(engine);
    const id = await add();
    await inner.openSession({
      queue,
      id: 'careless',
      owner: { host: 'h', pid: 1, name: 'n', instance: 'i' },
      durationMs: 60_000,
      maxStalls: 1,
      slots: 1,
    });
    store.on('claim', { fault: 'drop-reply', times: 1 });
    await expect(store.claim(queue, { session: 'careless', seq: 1, count: 1 })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    // A new number is a new call: the job of the first one stays with the session.
    const again = await store.claim(queue, { session: 'careless', seq: 2, count: 1 });
    expect(again.jobs).toEqual([]);
    expect(await inner.sweep(queue, 10)).toMatchObject({ stalled: [], failed: [] });
    expect((await inner.locks(queue, { session: 'careless' })).map(({ jobId }) => jobId)).toEqual([id]);
  });
});
