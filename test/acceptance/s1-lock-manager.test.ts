// S1: the lock manager as a part of its own.
import { type Connection, type Job, LockManager, type LockManagerContext, type LockManagerOptions, Worker } from 'holdfast';
import { FaultyStore } from 'holdfast/testing';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ENGINES, newScene, type Scene, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';
import { stopwatch } from '../support/wait/stopwatch.js';

interface Told {
  renewed: string[][];
  failed: string[][];
  errors: Error[];
}

function manage(context: LockManagerContext, options: LockManagerOptions = {}): { manager: LockManager; told: Told } {
  const told: Told = { renewed: [], failed: [], errors: [] };
  const manager = new LockManager(context, {
    onLocksRenewed: ({ count, jobIds }) => {
      expect(count).toBe(jobIds.length);
      told.renewed.push(jobIds);
    },
    onLockRenewalFailed: (jobIds) => void told.failed.push(jobIds),
    onError: (error) => void told.errors.push(error),
    ...options,
  });
  onTestFinished(() => manager.close());
  return { manager, told };
}

describe('LockManager without a store', () => {
  /** What the context answers; and how often it was asked. */
  let calls: string[][];
  let answer: (jobIds: string[]) => string[] | Promise<string[]>;
  const context: LockManagerContext = {
    extendJobLocks: async (jobIds) => {
      calls.push(jobIds);
      return answer(jobIds);
    },
  };
  const TICK = 15_000;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] });
    calls = [];
    answer = () => [];
  });
  afterEach(() => void vi.useRealTimers());

  test('S1-1 locks last 30 s and are renewed at half of it by default', () => {
    expect(manage(context).manager).toMatchObject({ lockDuration: 30_000, lockRenewTime: 15_000 });
    expect(manage(context, { lockDuration: 5000 }).manager).toMatchObject({ lockDuration: 5000, lockRenewTime: 2500 });
    expect(manage(context, { lockDuration: 5000, lockRenewTime: 1000 }).manager).toMatchObject({ lockRenewTime: 1000 });
  });

  test('S1-1 a missing required option and invalid values throw with the name of the option', () => {
    const construct = (given: unknown, options?: LockManagerOptions) => () =>
      new LockManager(given as LockManagerContext, options);
    for (const missing of [undefined, null, {}, { extendJobLocks: 'soon' }]) expect(construct(missing)).toThrow(/extendJobLocks/);
    for (const lockDuration of [0, -1, Number.NaN, 1.5]) expect(construct(context, { lockDuration })).toThrow(/lockDuration/);
    for (const lockRenewTime of [0, -5, Number.NaN, 30_000])
      expect(construct(context, { lockRenewTime })).toThrow(/lockRenewTime/);
  });

  test('S1-2 the count is that of the tracked jobs and no others', () => {
    const { manager } = manage(context);
    manager.trackJob('a', 'token-a');
    manager.trackJob('b', 'token-b');
    manager.untrackJob('a');
    expect(manager.getActiveJobCount()).toBe(1);
    expect(manager.getTrackedJobIds()).toEqual(['b']);
    expect(manager.isTracked('a')).toBe(false);
    expect(manager.isTracked('b')).toBe(true);
  });

  test('S1-3 500 tracked jobs: one timer, one call per tick; none without jobs', async () => {
    const { manager } = manage(context);
    manager.start();
    await vi.advanceTimersByTimeAsync(TICK);
    expect(calls).toHaveLength(0);
    for (let index = 0; index < 500; index += 1) manager.trackJob(`${index}`, `token-${index}`);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(3 * TICK);
    expect(calls.map(({ length }) => length)).toEqual([500, 500, 500]);
  });

  test('S4-9 started twice: one timer', async () => {
    const { manager } = manage(context);
    manager.trackJob('a', 'token');
    manager.start();
    manager.start();
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(TICK);
    expect(calls).toHaveLength(1);
  });

  test('S1-4 the renewed callback gets the ids', async () => {
    const { manager, told } = manage(context);
    manager.start();
    manager.trackJob('a', 'token-a');
    manager.trackJob('b', 'token-b');
    await vi.advanceTimersByTimeAsync(TICK);
    expect(told).toEqual({ renewed: [['a', 'b']], failed: [], errors: [] });
  });

  test('S1-5 the failed callback gets the lost ids once, they are untracked, and their signal fires', async () => {
    const { manager, told } = manage(context);
    answer = (jobIds) => jobIds.filter((id) => id !== 'b');
    manager.start();
    const controller = manager.trackJob('a', 'token-a', Date.now(), true);
    manager.trackJob('b', 'token-b');
    await vi.advanceTimersByTimeAsync(3 * TICK);
    expect(told.failed).toEqual([['a']]);
    expect(told.renewed).toEqual([['b'], ['b'], ['b']]);
    expect(manager.getTrackedJobIds()).toEqual(['b']);
    expect(controller?.signal.reason).toMatchObject({ code: 'LOCK_LOST', jobId: 'a' });
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('callback broke');
      },
    ],
    ['rejects', () => Promise.reject(new Error('callback broke'))],
  ])('S1-5 a callback that %s does not stop renewal, and is reported', async (_, broken) => {
    const { manager, told } = manage(context, { onLocksRenewed: broken, onLockRenewalFailed: broken });
    answer = (jobIds) => jobIds.filter((id) => id === 'lost');
    manager.start();
    manager.trackJob('kept', 'token');
    manager.trackJob('lost', 'token');
    await vi.advanceTimersByTimeAsync(2 * TICK);
    expect(calls).toEqual([['kept', 'lost'], ['kept']]);
    expect(told.errors.map(({ message }) => message)).toEqual(['callback broke', 'callback broke', 'callback broke']);
  });

  test('S1-5 an onError that throws is printed, and renewal goes on', async () => {
    const console = vi.spyOn(globalThis.console, 'error').mockImplementation(() => undefined);
    onTestFinished(() => console.mockRestore());
    const { manager } = manage(context, {
      onError: () => {
        throw new Error('listener broke');
      },
    });
    answer = () => Promise.reject(new Error('store is away'));
    manager.start();
    manager.trackJob('a', 'token');
    await vi.advanceTimersByTimeAsync(2 * TICK);
    expect(calls).toHaveLength(2);
    expect(console).toHaveBeenCalledTimes(2);
  });

  test('S1-6 S4-7 stopping twice is fine; no timer is left and it is silent', async () => {
    const { manager, told } = manage(context);
    manager.start();
    manager.trackJob('a', 'token');
    expect(manager.isRunning()).toBe(true);
    await manager.stop();
    await manager.close();
    expect(manager.isRunning()).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(5 * TICK);
    expect(calls).toHaveLength(0);
    expect(told).toEqual({ renewed: [], failed: [], errors: [] });
  });

  test('S1-7 a call that fails is reported and retried, and no lock is reported as lost', async () => {
    const { manager, told } = manage(context);
    manager.start();
    manager.trackJob('a', 'token');
    answer = () => Promise.reject(new Error('store is away'));
    await vi.advanceTimersByTimeAsync(3 * TICK);
    answer = () => [];
    await vi.advanceTimersByTimeAsync(TICK);
    expect(told.errors.map(({ message }) => message)).toEqual(['store is away', 'store is away', 'store is away']);
    expect(told.failed).toEqual([]);
    expect(told.renewed).toEqual([['a']]);
  });

  test('S1-7 a call that hangs is reported, and delays neither the next call nor close()', async () => {
    // Short ticks: close() waits for one by the clock of the machine.
    const { manager, told } = manage(context, { lockDuration: 200 });
    const tick = manager.lockRenewTime;
    manager.start();
    manager.trackJob('a', 'token');
    answer = () => new Promise(() => undefined);
    await vi.advanceTimersByTimeAsync(3 * tick);
    expect(calls).toHaveLength(3);
    expect(told.errors).toHaveLength(2);
    expect(told.errors[0]).toMatchObject({ code: 'TIMEOUT' });
    const took = stopwatch();
    await manager.close();
    expect(took()).toBeLessThan(tick + paced(500));
    expect(vi.getTimerCount()).toBe(0);
  });

  test('does not apply the reply of an earlier call to a lock that was tracked again', async () => {
    const { manager, told } = manage(context);
    let reply: (failed: string[]) => void = () => undefined;
    answer = () => new Promise((resolve) => (reply = resolve));
    manager.trackJob('a', 'first token');
    const renewing = manager.renew();
    manager.trackJob('a', 'second token');
    reply(['a']);
    await renewing;
    expect(told.failed).toEqual([]);
    expect(manager.isTracked('a')).toBe(true);
  });
});

describe.each(ENGINES)('LockManager on %s', (engine) => {
  function takeByHand(connection: Connection, lockDuration: number): Worker {
    const worker = new Worker('work', null, { connection, lockDuration });
    onTestFinished(() => worker.close());
    return worker;
  }

  const take = async (worker: Worker, token: string): Promise<Job> => {
    const job = await worker.getNextJob(token, { block: false });
    if (job === undefined) throw new Error('There is no job to take.');
    return job;
  };

  test('S1-4 a job that was taken by hand is kept for as long as it is tracked; (N) its twin that is not tracked is recovered', async () => {
    const scene = await newScene(engine);
    await scene.queue.addBulk([{ name: 'kept' }, { name: 'twin' }]);
    const hand = takeByHand(scene.connection, paced(1000));
    const [kept, twin] = [await take(hand, 'k'), await take(hand, 't')];
    const { manager, told } = manage(hand, { lockDuration: paced(1000), lockRenewTime: paced(200) });
    manager.start();
    manager.trackJob(kept.id, 'k');
    const { log } = work(scene, () => 'recovered', { stalledInterval: 50 });
    await log.moment('completed', ({ args }) => (args as [{ id: string }])[0].id === twin.id);
    // Told by the lock thread, which swept; the loop may have heard of the job from the store before, and finished it.
    await log.moment('stalled');
    await until('four renewals', async () => told.renewed.length >= 4);
    expect(log.all('stalled').map(({ args }) => args)).toEqual([[twin.id, 'active']]);
    expect(kept.lock.held).toBe(true);
    await kept.moveToCompleted('by hand', 'k', false);
    manager.untrackJob(kept.id);
    expect((await scene.queue.getJob(kept.id))?.returnvalue).toBe('by hand');
    expect(told.failed).toEqual([]);
  });

  test('S1-5 a lock that was taken away is reported once, and its owner can no longer finish', async () => {
    const scene = await newScene(engine);
    await scene.queue.add('stolen');
    const hand = takeByHand(scene.connection, paced(400));
    const job = await take(hand, 's');
    const { manager, told } = manage(hand, { lockDuration: paced(400) });
    manager.start();
    manager.trackJob(job.id, 's');
    await scene.store.change('work', [job.id], { kind: 'revoke', reason: 'an operator took it' });
    await until('the loss to be told', async () => told.failed.length > 0);
    expect(told.failed).toEqual([[job.id]]);
    expect(manager.getActiveJobCount()).toBe(0);
    await expect(job.moveToCompleted('mine', 's', false)).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(await (await scene.queue.getJob(job.id))?.getState()).toBe('waiting');
  });

  const ROUNDS = 20;
  const AT_ONCE = 50;

  /**
   * Finishes 1000 jobs while ticks go on, and answers what was reported lost. In every other round the answers to the finishes are
   * held back until a tick has found the jobs finished; in every other pair of rounds the finish removes the job, so that the store has
   * nothing left to recognise it by.
   */
  async function race({ queue, store }: Scene, contextOf: (hand: Worker) => LockManagerContext): Promise<string[]> {
    const slow = new FaultyStore(store);
    const hand = takeByHand(slow, 30_000);
    const { manager, told } = manage(contextOf(hand));
    for (let round = 0; round < ROUNDS; round += 1) {
      const opts = { removeOnComplete: round % 4 >= 2 };
      await queue.addBulk(Array.from({ length: AT_ONCE }, () => ({ name: 'raced', opts })));
      const jobs = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => take(hand, `token-${index}`)));
      for (const job of jobs) manager.trackJob(job.id, job.lock.token);
      const held = round % 2 === 1 ? slow.on('settle', { fault: 'hold-reply' }) : undefined;
      const finishes = jobs.map(async (job, index) => {
        // Not every end of a run is a finish.
        if (index % 5 === 0) await job.moveToDelayed(Date.now() + 3_600_000, job.token);
        else await job.moveToCompleted('done', job.token, false);
        manager.untrackJob(job.id);
      });
      const finished = Promise.all(finishes).then(() => true);
      while (!(await Promise.race([finished, nextTurn()]))) {
        await manager.renew();
        held?.release();
      }
      held?.remove();
    }
    expect(told.errors).toEqual([]);
    return told.failed.flat();
  }

  test('S1-8 a job that finishes exactly at a tick, 1000 times: no false "lost"', async () => {
    const scene = await newScene(engine);
    expect(await race(scene, (hand) => hand)).toEqual([]);
    expect(await scene.queue.getJobCounts('completed', 'failed', 'active', 'delayed')).toEqual({
      completed: 400,
      failed: 0,
      active: 0,
      delayed: 200,
    });
  });

  test('S1-8 (N) a context that takes every refused extension for a loss reports finished jobs as lost', async () => {
    const scene = await newScene(engine);
    const lost = await race(scene, () => ({
      extendJobLocks: async (jobIds, tokens, durationMs) => {
        const extensions = jobIds.map((jobId, index) => ({ jobId, token: tokens[index] ?? '', durationMs }));
        const statuses = await scene.store.extend('work', extensions);
        return jobIds.filter((_, index) => statuses[index] !== 'done');
      },
    }));
    expect(lost.length).toBeGreaterThan(0);
  });
});

function nextTurn(): Promise<false> {
  return new Promise((resolve) => setImmediate(resolve, false));
}
