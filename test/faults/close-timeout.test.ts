// close({ timeoutMs }): waits for so long, then interrupts what runs and hands it back. Handlers that obey, that do not, and what their
// late results do; replies that get lost on the way.
import { describe, expect, test } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import type { HoldfastError } from '../../src/errors.js';
import type { Batch } from '../../src/worker/batch.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Handler, next, scene } from '../support/scenes/faulty-scene.js';
import { newGate } from '../support/wait/gate.js';
import { paced } from '../support/wait/pace.js';
import { outcomeOf, until } from '../support/wait/until.js';

/** Ends with the reason of its signal, as `fetch` and other parts of the platform do. */
const obeying: Handler = (_job, _token, signal) =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });

/** Longer than an interrupted handler is waited for. */
const ENDS_MS = paced(5000);
const UNCHARGED = { attemptsMade: 0, stalledCounter: 0 };

function interruptionsOf(worker: Worker): [id: string, code: string][] {
  const seen: [string, string][] = [];
  worker.on('interrupted', (job, reason) => seen.push([job.id, (reason as HoldfastError).code]));
  return seen;
}

describe.each(ENGINES)('close({ timeoutMs }) on %s', (engine) => {
  test('waits for a job that ends in time, and interrupts nothing', async () => {
    const { add, worker, record } = await scene(engine);
    const id = await add();
    const finish = newGate();
    const { worker: watched, errors } = worker(() => finish.opened.then(() => 'in time'));
    const interrupted = interruptionsOf(watched);
    await next(watched, 'active');
    const closing = watched.close({ timeoutMs: 60_000 });
    expect(await outcomeOf(closing, 100)).toBe('pending');
    finish.open();
    await closing;
    expect(await record(id)).toMatchObject({ state: 'completed', returnvalue: '"in time"' });
    expect([...interrupted, ...errors]).toEqual([]);
  });

  test('aborts with SHUTDOWN, counts neither attempt nor stall, and an idle worker starts the job at once', async () => {
    const { add, worker, record, reaches, inner, queue } = await scene(engine);
    const id = await add({ attempts: 1 });
    let reason: unknown;
    const { worker: first, errors } = worker((job, token, signal) => {
      signal.addEventListener('abort', () => (reason = signal.reason));
      return obeying(job, token, signal);
    });
    const interrupted = interruptionsOf(first);
    await next(first, 'active');
    const finish = newGate();
    // It asks by itself once in an hour only, so that it is woken or waits.
    const { worker: second } = worker(() => finish.opened.then(() => 'by another'), { drainDelay: 3600 });
    await next(second, 'ready');
    const started = next(second, 'active');
    await first.close({ timeoutMs: paced(100) });
    expect(reason).toMatchObject({ code: 'SHUTDOWN', jobId: id });
    expect(interrupted).toEqual([[id, 'SHUTDOWN']]);
    await started;
    expect(await record(id)).toMatchObject({ state: 'active', attemptsStarted: 2, ...UNCHARGED });
    expect(await inner.sessions(queue)).toHaveLength(1);
    finish.open();
    expect(await reaches(id, 'completed')).toMatchObject({ returnvalue: '"by another"', attemptsMade: 1, stalledCounter: 0 });
    expect(errors).toEqual([]);
  });

  test.each([false, true])(
    'hands back the job of a handler that ignores its signal, and refuses what it does later (skipLockRenewal %s)',
    async (skipLockRenewal) => {
      const { add, worker, reaches, inner, queue } = await scene(engine);
      const id = await add({ attempts: 1 });
      const finish = newGate();
      let late: Job | undefined;
      const { worker: stubborn, errors } = worker(
        (job) => {
          late = job;
          return finish.opened.then(() => 'too late');
        },
        { skipLockRenewal, lockDuration: 60_000 },
      );
      const interrupted = interruptionsOf(stubborn);
      const completed: string[] = [];
      stubborn.on('completed', (job) => completed.push(job.id));
      await next(stubborn, 'active');
      expect(await outcomeOf(stubborn.close({ timeoutMs: 50 }), ENDS_MS)).toBe('resolved');
      expect(interrupted).toEqual([[id, 'SHUTDOWN']]);
      expect(await reaches(id, 'waiting')).toMatchObject({ attemptsStarted: 1, ...UNCHARGED });
      expect(late?.lock).toMatchObject({ held: false, remainingMs: 0 });
      worker(() => 'by another');
      expect(await reaches(id, 'completed')).toMatchObject({ returnvalue: '"by another"', attemptsMade: 1, stalledCounter: 0 });
      const stale = { kind: 'completed', jobId: id, token: late?.token ?? '', value: '"too late"', keep: {} } as const;
      expect((await inner.settle(queue, [stale], { caller: 'late', seq: 1 })).results).toEqual(['lost']);
      await expect(late?.updateProgress(1)).rejects.toThrow();
      finish.open();
      await until('the late result to be reported', () => errors.length > 0);
      expect(errors).toMatchObject([{ code: 'LOCK_LOST', jobId: id }]);
      expect(completed).toEqual([]);
      expect(await reaches(id, 'completed')).toMatchObject({ returnvalue: '"by another"' });
    },
  );

  test('keeps the result of a handler that returns after its signal was aborted', async () => {
    const { add, worker, record } = await scene(engine);
    const id = await add();
    const { worker: watched } = worker(
      (_job, _token, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('what there is'))),
    );
    const interrupted = interruptionsOf(watched);
    await next(watched, 'active');
    await watched.close({ timeoutMs: 0 });
    expect(await record(id)).toMatchObject({ state: 'completed', returnvalue: '"what there is"' });
    expect(interrupted).toEqual([]);
  });

  test('ends although a handler goes on that has moved its job itself', async () => {
    const { add, worker, record } = await scene(engine);
    const id = await add();
    const moved = newGate();
    const { worker: watched, errors } = worker(async (job, token) => {
      await job.moveToCompleted('by hand', token, false);
      moved.open();
      await new Promise(() => undefined);
    });
    const interrupted = interruptionsOf(watched);
    await moved.opened;
    expect(await outcomeOf(watched.close({ timeoutMs: 0 }), ENDS_MS)).toBe('resolved');
    expect(await record(id)).toMatchObject({ state: 'completed', returnvalue: '"by hand"', attemptsMade: 1 });
    expect([...interrupted, ...errors]).toEqual([]);
  });

  test.each([true, false])('hands back once although the reply to the hand-back is lost (handler obeys: %s)', async (obeys) => {
    const { store, add, worker, reaches, inner, queue } = await scene(engine);
    const id = await add({ attempts: 1 });
    const { worker: first } = worker(obeys ? obeying : () => new Promise(() => undefined), { lockDuration: 60_000 });
    const interrupted = interruptionsOf(first);
    await next(first, 'active');
    store.on('settle', { fault: 'drop-reply', times: 1 });
    const calls = store.calls('settle');
    // The job is taken while the worker does not know yet that it went back: the repeated hand-back must not take it away.
    const finish = newGate();
    const { worker: second, errors } = worker(() => finish.opened.then(() => 'by another'));
    const started = next(second, 'active');
    await first.close({ timeoutMs: 0 });
    await started;
    expect(store.calls('settle') - calls, 'the hand-back was repeated').toBeGreaterThan(1);
    expect(interrupted).toEqual([[id, 'SHUTDOWN']]);
    expect((await inner.locks(queue, { jobIds: [id] }))[0]?.owner.name).toBe(second.opts.name);
    finish.open();
    expect(await reaches(id, 'completed')).toMatchObject({ returnvalue: '"by another"', attemptsStarted: 2, stalledCounter: 0 });
    expect(errors).toEqual([]);
  });

  test('ends although the store takes no hand-back, and the job goes back with the session', async () => {
    const { store, add, worker, reaches } = await scene(engine);
    const id = await add();
    // With pauses that went on doubling, the last one would end 1.4 s after the lock duration.
    const { worker: watched, errors } = worker(obeying, { lockDuration: paced(1750) });
    await next(watched, 'active');
    store.on('settle', { fault: 'fail' });
    expect(await outcomeOf(watched.close({ timeoutMs: 0 }), ENDS_MS)).toBe('resolved');
    expect(errors.some((error) => (error as HoldfastError).code === 'OUTCOME_UNKNOWN')).toBe(true);
    expect(await reaches(id, 'waiting')).toMatchObject(UNCHARGED);
  });

  test('a later call may shorten the wait, and none lengthens it', async () => {
    const { add, worker, reaches } = await scene(engine);
    const id = await add();
    const { worker: watched } = worker(obeying);
    await next(watched, 'active');
    const patient = watched.close();
    void watched.close({ timeoutMs: 60_000 });
    expect(await outcomeOf(patient, 100)).toBe('pending');
    void watched.close({ timeoutMs: 0 });
    void watched.close({ timeoutMs: 60_000 });
    expect(await outcomeOf(patient, ENDS_MS)).toBe('resolved');
    await reaches(id, 'waiting');
  });

  test.each([-1, 1.5, Number.NaN, '5', null])('refuses timeoutMs %s, and the worker goes on', async (timeoutMs) => {
    const { add, worker, reaches } = await scene(engine);
    const { worker: watched } = worker(() => 'still open');
    await expect(watched.close({ timeoutMs: timeoutMs as number })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      option: 'timeoutMs',
    });
    expect(watched.isRunning()).toBe(true);
    await reaches(await add(), 'completed');
  });

  test('hands back the undecided jobs of a batch, and keeps those that its processor has completed', async () => {
    const { add, reaches, store, queue } = await scene(engine);
    const ids = [await add(), await add(), await add()];
    const begun = newGate();
    const batch = { size: 3, minSize: 3, waitMs: 60_000 };
    const worker = new Worker(
      queue,
      async (given: Batch) => {
        for (const job of given.jobs.slice(0, 2)) given.complete(job, 'done');
        begun.open();
        await new Promise(() => undefined);
      },
      { connection: store, batch },
    );
    await begun.opened;
    expect(await outcomeOf(worker.close({ timeoutMs: 0 }), ENDS_MS)).toBe('resolved');
    for (const id of ids.slice(0, 2)) expect(await reaches(id, 'completed')).toMatchObject({ returnvalue: '"done"' });
    expect(await reaches(ids[2] as string, 'waiting')).toMatchObject(UNCHARGED);
    const all = newGate();
    const other = new Worker(
      queue,
      async (given: Batch) => {
        given.complete(given.jobs[0] as Job, 'the last one');
        all.open();
        await new Promise(() => undefined);
      },
      { connection: store, batch: { size: 1, minSize: 1, waitMs: 0 } },
    );
    await all.opened;
    expect(await outcomeOf(other.close({ timeoutMs: 0 }), ENDS_MS)).toBe('resolved');
    expect(await reaches(ids[2] as string, 'completed')).toMatchObject({ returnvalue: '"the last one"' });
  });
});
