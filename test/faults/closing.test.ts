// close() comes to an end whatever the store does, tells what it could not do, and leaves nothing behind that goes on.
import { describe, expect, test } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Handler, messagesOf, next, scene } from '../support/scenes/faulty-scene.js';
import { outcomeOf, sleep, until } from '../support/wait/until.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';

/** Ends with the reason of its signal, as `fetch` and other parts of the platform do. */
const obeying: Handler = (_job, _token, signal) =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });

describe.each(ENGINES)('closing on %s', (engine) => {
  test('S4-8 close() renews a job longer than the lock until it completes, then ends the session', async () => {
    const { add, worker, record, inner, queue } = await scene(engine);
    const id = await add();
    let renewals = 0;
    const { worker: watched, errors } = worker(() => sleep(paced(900), 'slow'), {
      lockDuration: paced(300),
      stalledInterval: 50,
    });
    watched.on('locksRenewed', () => (renewals += 1));
    await next(watched, 'active');
    await watched.close();
    expect(await record(id)).toMatchObject({ state: 'completed', attemptsStarted: 1, stalledCounter: 0 });
    expect(renewals).toBeGreaterThanOrEqual(3);
    expect(errors).toEqual([]);
    expect(await inner.sessions(queue)).toEqual([]);
  });

  test('close() delivers the result of a job although the store fails for a moment at its end', async () => {
    const { store, add, worker, record } = await scene(engine);
    const id = await add();
    const { worker: watched, errors } = worker(() => sleep(paced(1600), 'kept'), { lockDuration: paced(800) });
    await next(watched, 'active');
    store.on('settle', { fault: 'fail', times: 2 });
    await watched.close();
    expect(await record(id)).toMatchObject({ state: 'completed', returnvalue: '"kept"' });
    expect(messagesOf(errors, 'A test made settle() fail')).toHaveLength(1);
    expect(errors).toHaveLength(1);
  });

  test.each(['fail', 'hang'] as const)(
    'close() returns and reports the result as unknown when the store takes no results (%s)',
    async (fault) => {
      const { store, add, worker, reaches } = await scene(engine);
      const id = await add();
      const finish = newGate();
      const { worker: watched, errors } = worker(() => finish.opened, { lockDuration: paced(300) });
      await next(watched, 'active');
      store.on('settle', { fault });
      const closing = watched.close();
      finish.open();
      expect(await outcomeOf(closing, paced(3000))).toBe('resolved');
      expect(errors.filter((error) => 'code' in error && error.code === 'OUTCOME_UNKNOWN')).toHaveLength(1);
      // The session was closed, so the job is free at once.
      await reaches(id, 'waiting');
    },
  );

  test('close() does not wait for claims that fail', async () => {
    const { store, worker } = await scene(engine);
    store.on('claim', { fault: 'fail' });
    const { worker: watched, errors } = worker(() => undefined);
    await until('a claim to fail', () => errors.length > 0);
    expect(await outcomeOf(watched.close(), paced(1000))).toBe('resolved');
  });

  test('close() does not wait long for a claim that hangs', async () => {
    const { store, worker } = await scene(engine);
    const hung = store.on('claim', { fault: 'hang' });
    const { worker: watched } = worker(() => undefined);
    await until('a claim to hang', () => hung.holding > 0);
    expect(await outcomeOf(watched.close(), paced(3000))).toBe('resolved');
  });

  test.each(['fail', 'hang'] as const)('close() returns when the session cannot be closed (%s)', async (fault) => {
    const { store, worker } = await scene(engine);
    const { worker: watched, errors } = worker(() => undefined, { lockDuration: paced(300) });
    await next(watched, 'ready');
    store.on('closeSessions', { fault });
    expect(await outcomeOf(watched.close(), paced(3000))).toBe('resolved');
    expect(errors.length).toBeGreaterThan(0);
  });

  test('close() returns when the store cannot be opened, and nothing is emitted after closed', async () => {
    const { store, worker } = await scene(engine);
    store.on('openSession', { fault: 'fail' });
    const { worker: watched, errors } = worker(() => undefined);
    await until('a failure', () => errors.length > 0);
    expect(await outcomeOf(watched.close(), paced(2000))).toBe('resolved');
    const told = errors.length;
    const calls = store.calls('openSession');
    await sleep(400);
    expect(errors).toHaveLength(told);
    expect(store.calls('openSession')).toBe(calls);
  });

  test('close() from a ready listener lets no job be claimed', async () => {
    const { add, worker, record, store } = await scene(engine);
    const id = await add();
    const { worker: watched, errors } = worker(() => 'too late');
    await new Promise<void>((resolve) => watched.once('ready', () => void watched.close().then(resolve)));
    await sleep(150);
    expect(store.calls('claim')).toBe(0);
    expect(store.calls('openSession')).toBe(1);
    expect(errors).toEqual([]);
    expect(await record(id)).toMatchObject({ state: 'waiting', attemptsStarted: 0 });
  });

  test('close() closes once, also when a closing listener calls it again', async () => {
    const { worker } = await scene(engine);
    const { worker: watched, errors } = worker(() => undefined);
    await next(watched, 'ready');
    let closings = 0;
    watched.on('closing', () => {
      closings += 1;
      void watched.close();
    });
    await Promise.all([watched.close(), watched.close()]);
    expect(closings).toBe(1);
    expect(errors).toEqual([]);
    expect(watched.isRunning()).toBe(false);
  });

  test('close() hands back the job of a claim in flight without a stall', async () => {
    const { store, add, worker, reaches } = await scene(engine);
    const held = store.on('claim', { fault: 'hold-reply', times: 1, when: (_, { count }) => count > 0 });
    const id = await add();
    let runs = 0;
    const { worker: watched } = worker(() => ++runs);
    await until('the claim to be held', () => held.holding > 0);
    const closing = watched.close();
    await sleep(20);
    held.release();
    await closing;
    expect(await reaches(id, 'waiting')).toMatchObject({ stalledCounter: 0, attemptsMade: 0 });
    expect(runs).toBe(0);
  });

  test('close(true) does not wait: it aborts the signal, and a late result is still delivered', async () => {
    const { add, worker, reaches } = await scene(engine);
    const id = await add();
    const finish = newGate();
    let reason: unknown;
    const { worker: watched, errors } = worker(async (_job, _token, signal) => {
      await finish.opened;
      reason = signal.reason;
      return 'late';
    });
    await next(watched, 'active');
    expect(await outcomeOf(watched.close(true), paced(1000))).toBe('resolved');
    finish.open();
    expect(await reaches(id, 'completed')).toMatchObject({ returnvalue: '"late"' });
    expect(reason).toMatchObject({ code: 'SHUTDOWN', jobId: id });
    expect(errors).toEqual([]);
  });

  test('close(true) after close() stops waiting', async () => {
    const { add, worker, reaches } = await scene(engine);
    const id = await add();
    const finish = newGate();
    const { worker: watched } = worker(async () => finish.opened);
    await next(watched, 'active');
    const patient = watched.close();
    expect(await outcomeOf(patient, 100)).toBe('pending');
    expect(await outcomeOf(watched.close(true), paced(1000))).toBe('resolved');
    expect(await outcomeOf(patient, paced(100))).toBe('resolved');
    finish.open();
    await reaches(id, 'completed');
  });

  test('close(true) costs a handler that obeys its signal no attempt, and a second worker runs the job', async () => {
    const { add, worker, reaches } = await scene(engine);
    const id = await add({ attempts: 1 });
    const { worker: first, errors } = worker(obeying);
    await next(first, 'active');
    await first.close(true);
    expect(await reaches(id, 'waiting')).toMatchObject({ attemptsMade: 0, attemptsStarted: 1, stalledCounter: 0 });
    const { worker: second } = worker(() => 'by another');
    await next(second, 'completed');
    expect(await reaches(id, 'completed')).toMatchObject({ returnvalue: '"by another"', attemptsMade: 1, stalledCounter: 0 });
    expect(errors).toEqual([]);
  });

  test('close(true) hands back the job of a handler that throws something else, beside a second worker', async () => {
    const { add, worker, reaches } = await scene(engine);
    const finish = newGate();
    const { worker: first } = worker(() => finish.opened);
    const started = next(first, 'active');
    const id = await add({ attempts: 1 });
    await started;
    const { worker: second } = worker(() => 'by another');
    await next(second, 'ready');
    await first.close(true);
    finish.fail(new Error('the connection pool is gone'));
    expect(await reaches(id, 'completed')).toMatchObject({ returnvalue: '"by another"', attemptsMade: 1, stalledCounter: 0 });
  });

  test('close(true) leaves an earlier failure a failure', async () => {
    const { add, store, worker, reaches } = await scene(engine);
    const id = await add({ attempts: 1 });
    const finish = newGate();
    const { worker: watched } = worker(() => finish.opened);
    await next(watched, 'active');
    const held = store.on('settle', { fault: 'hang', times: 1 });
    finish.fail(new Error('broken'));
    await until('the failure to be under way', () => held.holding > 0);
    const closing = watched.close(true);
    held.release();
    await closing;
    expect(await reaches(id, 'failed')).toMatchObject({ failedReason: 'broken', attemptsMade: 1 });
  });

  test('close(true) leaves a cancelled job cancelled', async () => {
    const { add, worker, reaches } = await scene(engine);
    const id = await add({ attempts: 1 });
    const finish = newGate();
    const { worker: watched } = worker(async (_job, _token, signal) => {
      await finish.opened;
      signal.throwIfAborted();
    });
    await next(watched, 'active');
    watched.cancelJob(id, new Error('not wanted any more'));
    await watched.close(true);
    finish.open();
    expect(await reaches(id, 'failed')).toMatchObject({ failedReason: 'not wanted any more' });
  });

  test('close() waits for a handler that never settles, close(true) does not, and the job moves on when its lock ends', async () => {
    const { add, worker, reaches, inner, queue } = await scene(engine);
    const id = await add();
    const { worker: stuck } = worker(() => new Promise(() => undefined), { lockDuration: paced(300), skipStalledCheck: true });
    await next(stuck, 'active');
    expect(await outcomeOf(stuck.close(true), paced(1000))).toBe('resolved');
    await until('the session to lapse', async () => (await inner.sessions(queue)).every(({ expiresInMs }) => expiresInMs <= 0));
    worker(() => 'by another', { stalledInterval: 50 });
    expect(await reaches(id, 'completed')).toMatchObject({ stalledCounter: 1, attemptsStarted: 2 });
  });

  test.each([false, true])(
    'close(%s) hands back a job that was taken by hand without a stall, after it aborted its signal',
    async (force) => {
      const { store, add, worker, record, inner, queue } = await scene(engine);
      const id = await add({ attempts: 1 });
      const { worker: hand, errors } = worker(null, { lockDuration: 30_000 });
      const job = (await hand.getNextJob('mine')) as Job;
      const { signal } = job.lock;
      const held = store.on('settle', { fault: 'hang', times: 1 });
      const closing = hand.close(force);
      await until('the hand-back to be under way', () => held.holding > 0);
      expect(job.lock.held).toBe(false);
      expect(signal.reason).toMatchObject({ code: 'SHUTDOWN', jobId: id });
      expect(await record(id)).toMatchObject({ state: 'active' });
      held.release();
      await closing;
      await until('the job to be back', async () => (await record(id))?.state === 'waiting');
      expect(await record(id)).toMatchObject({ attemptsMade: 0, stalledCounter: 0 });
      expect((await inner.locks(queue, { jobIds: [id] }))[0]).toBeUndefined();
      await until('the worker to have let go', async () => (await inner.sessions(queue)).length === 0);
      await expect(job.moveToCompleted('late', 'mine', false)).rejects.toMatchObject({ code: 'CLOSED' });
      expect(errors).toEqual([]);
      const { worker: other } = worker(() => 'by another');
      await next(other, 'completed');
      expect(await record(id)).toMatchObject({ returnvalue: '"by another"', attemptsMade: 1, stalledCounter: 0 });
    },
  );

  test('close() lets a job taken by hand go back with the session when the store refuses the hand-back', async () => {
    const { store, add, worker, reaches } = await scene(engine);
    const id = await add();
    const { worker: hand } = worker(null, { lockDuration: paced(600) });
    // The end of the session frees the job, and not the end of its lock.
    await (await hand.getNextJob('mine'))?.extendLock('mine', 60_000);
    store.on('settle', { fault: 'fail' });
    await hand.close();
    expect(await reaches(id, 'waiting')).toMatchObject({ attemptsMade: 0, stalledCounter: 0 });
  });

  test('close() of a queue hands back a job whose lock it took, without a stall', async () => {
    const { store, queue, add, record, inner } = await scene(engine);
    const id = await add();
    const holder = new Queue(queue, { connection: store });
    const job = (await holder.getJob(id)) as Job;
    await job.takeLock();
    expect(job.lock.held).toBe(true);
    await holder.close();
    expect(job.lock.held).toBe(false);
    expect(await record(id)).toMatchObject({ state: 'waiting', attemptsMade: 0, stalledCounter: 0 });
    expect(await inner.sessions(queue)).toEqual([]);
  });

  test('close() waits for a move in flight, also if it has to be repeated', async () => {
    const { store, add, worker, record } = await scene(engine);
    const id = await add();
    const { worker: watched } = worker(null);
    const job = await watched.getNextJob('mine');
    store.on('settle', { fault: 'fail', times: 2 });
    const moving = job?.moveToCompleted('in time', 'mine', false);
    await watched.close();
    expect(await moving).toEqual([]);
    expect(await record(id)).toMatchObject({ state: 'completed', returnvalue: '"in time"' });
  });

  test('close() ends all waiting getNextJob calls', async () => {
    const { worker } = await scene(engine);
    const { worker: watched, errors } = worker(null);
    const waiting = [watched.getNextJob('a'), watched.getNextJob('b'), watched.getNextJob('c')];
    await sleep(50);
    expect(await outcomeOf(watched.close(), paced(1000))).toBe('resolved');
    expect(await outcomeOf(Promise.all(waiting), paced(500))).toBe('resolved');
    expect(await Promise.all(waiting)).toEqual([undefined, undefined, undefined]);
    expect(errors).toEqual([]);
  });

  test('close() hands back the job of a getNextJob in flight, and no handle holds it', async () => {
    const { store, add, worker, reaches } = await scene(engine);
    const id = await add();
    const held = store.on('claim', { fault: 'hold-reply', times: 1 });
    const { worker: watched } = worker(null);
    const taking = watched.getNextJob('mine');
    await until('the claim to be held', () => held.holding > 0);
    const closing = watched.close();
    await sleep(20);
    held.release();
    expect(await taking).toBeUndefined();
    await closing;
    expect(await reaches(id, 'waiting')).toMatchObject({ stalledCounter: 0 });
  });

  test('close() of a worker that never ran does not touch the store', async () => {
    const { store, queue } = await scene(engine);
    const idle = new Worker(queue, () => undefined, { connection: store, autorun: false });
    await idle.close();
    expect(store.calls('openSession') + store.calls('closeSessions')).toBe(0);
    await expect(idle.run()).rejects.toMatchObject({ code: 'CLOSED' });
  });
});
