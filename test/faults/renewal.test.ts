// Renewal that fails or hangs for a while: told per attempt, trust ends on time, and a late finish still counts if nobody else came.
import { describe, expect, test } from 'vitest';
import { ENGINES, messagesOf, next, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { stopwatch } from '../support/wait/stopwatch.js';

const SHORT = { lockDuration: paced(400), lockRenewTime: paced(100) };

describe.each(ENGINES)('failing renewal on %s', (engine) => {
  test('emits an error per attempt, aborts each signal once when trust ends, and a late finish is accepted', async () => {
    const { store, add, reaches, worker } = await scene(engine);
    const outage = store.on('renew', { fault: 'fail' });
    const ids = [await add(), await add()];
    const finish = newGate();
    const seen: { heldAtStart: boolean; lostAfterMs: number; heldAfter: boolean; reason: unknown }[] = [];
    const { worker: watched, errors } = worker(
      async (job, _token, signal) => {
        const took = stopwatch();
        const heldAtStart = job.lock.held;
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        seen.push({ heldAtStart, lostAfterMs: took(), heldAfter: job.lock.held, reason: signal.reason });
        await finish.opened;
        return 'late';
      },
      { ...SHORT, concurrency: 2, skipStalledCheck: true },
    );
    const failed: string[] = [];
    watched.on('lockRenewalFailed', (jobIds) => failed.push(...jobIds));
    await until('both handlers to be told', () => seen.length === 2);
    for (const { heldAtStart, lostAfterMs, heldAfter, reason } of seen) {
      expect(heldAtStart).toBe(true);
      expect(heldAfter).toBe(false);
      // Before the store lets anyone else in.
      expect(lostAfterMs).toBeLessThanOrEqual(SHORT.lockDuration);
      expect(reason).toMatchObject({ code: 'LOCK_LOST' });
      expect(String(reason)).toContain('lock lost');
    }
    expect(messagesOf(errors, 'A test made renew() fail').length).toBe(outage.struck);
    expect(outage.struck).toBeGreaterThanOrEqual(2);
    outage.remove();
    finish.open();
    for (const id of ids) expect(await reaches(id, 'completed')).toMatchObject({ attemptsStarted: 1, returnvalue: '"late"' });
    expect(failed.toSorted()).toEqual(ids.toSorted());
    for (const id of ids) expect(messagesOf(errors, `could not renew lock for job ${id}`)).toHaveLength(1);
    expect(messagesOf(errors, 'Could not settle')).toHaveLength(0);
  });

  test('uses up no attempt of a handler that obeys its signal when trust ends', async () => {
    const { store, add, reaches, worker } = await scene(engine);
    store.on('renew', { fault: 'fail' });
    const id = await add({ attempts: 1 });
    const reasons: unknown[] = [];
    worker(
      async (job, _token, signal) => {
        if (job.attemptsStarted > 1) return 'again';
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        reasons.push(signal.reason);
        store.clear();
        throw new Error('The operation was aborted');
      },
      { ...SHORT, skipStalledCheck: true },
    );
    expect(await reaches(id, 'completed')).toMatchObject({ attemptsMade: 1, attemptsStarted: 2, stalledCounter: 0 });
    expect(reasons).toMatchObject([{ code: 'LOCK_LOST' }]);
  });

  test('loses nothing and runs the job once when the outage ends in time', async () => {
    const { store, add, reaches, worker } = await scene(engine);
    store.on('renew', { fault: 'fail', times: 2 });
    const id = await add();
    const { worker: watched, errors } = worker(
      async (job, _token, signal) => {
        await new Promise((resolve) => watched.once('locksRenewed', resolve));
        return job.lock.held && !signal.aborted;
      },
      { ...SHORT, stalledInterval: 50 },
    );
    expect(await reaches(id, 'completed')).toMatchObject({ attemptsStarted: 1, stalledCounter: 0, returnvalue: 'true' });
    expect(errors).toHaveLength(2);
  });

  test('does not report an outage again that other calls of the worker have reported', async () => {
    const { store, add, reaches, worker } = await scene(engine);
    store.on('claim', { fault: 'fail' });
    const outage = store.on('renew', { fault: 'fail' });
    const { errors } = worker(() => 'done', { lockDuration: paced(2000), lockRenewTime: paced(100), skipStalledCheck: true });
    await until('renewals to fail, again and again', () => outage.struck >= 5);
    expect(messagesOf(errors, 'A test made claim() fail')).toHaveLength(1);
    expect(errors).toHaveLength(1);
    store.clear();
    expect(await reaches(await add(), 'completed')).toMatchObject({ attemptsStarted: 1 });
  });

  test('reports a renewal that hangs, and sends the next one', async () => {
    const { store, add, reaches, worker } = await scene(engine);
    const hung = store.on('renew', { fault: 'hang', times: 1 });
    const id = await add();
    const told = newGate();
    const { errors } = worker(
      async (job) => {
        await told.opened;
        return job.lock.held;
      },
      { lockDuration: paced(600), lockRenewTime: paced(150), stalledInterval: 50 },
    );
    await until('the hang to be told', () => messagesOf(errors, 'did not answer a lock renewal in time').length > 0);
    told.open();
    expect(await reaches(id, 'completed')).toMatchObject({ attemptsStarted: 1, stalledCounter: 0, returnvalue: 'true' });
    expect(hung.holding).toBe(1);
    expect(messagesOf(errors, 'could not renew lock')).toHaveLength(0);
  });

  test('revives nothing by a reply after the session was swept, and the finish is refused', async () => {
    const { store, add, reaches, worker, inner, queue } = await scene(engine);
    const id = await add();
    const finish = newGate();
    const { worker: watched, errors } = worker(() => finish.opened, { ...SHORT, skipStalledCheck: true });
    const active = next(watched, 'active');
    const outage = store.on('renew', { fault: 'fail' });
    await active;
    await watched.pause(true);
    await until('the session to be reaped', async () => (await inner.sweep(queue, 10)).stalled.length > 0);
    outage.remove();
    await until('the worker to hear of it', () => messagesOf(errors, `could not renew lock for job ${id}`).length > 0);
    finish.open();
    await until('the refusal to be told', () => messagesOf(errors, `Could not settle job ${id}`).length > 0);
    expect(errors.filter((error) => 'code' in error && error.code === 'LOCK_LOST')).toHaveLength(1);
    expect(messagesOf(errors, `could not renew lock for job ${id}`)).toHaveLength(1);
    expect(await reaches(id, 'waiting')).toMatchObject({ stalledCounter: 1, attemptsMade: 0 });
  });

  test('opens another session after the store ended the first', async () => {
    const { add, reaches, worker, inner, queue } = await scene(engine);
    const { worker: watched } = worker(() => 'done', SHORT);
    await watched.waitUntilReady();
    const [session] = await until('a session', async () => {
      const sessions = await inner.sessions(queue);
      return sessions.length > 0 ? sessions : undefined;
    });
    await inner.closeSessions([{ queue, id: session?.id ?? '' }], 'closed');
    const id = await add();
    await reaches(id, 'completed');
    await until('the new session', async () => (await inner.sessions(queue)).some((other) => other.id !== session?.id));
  });
});
