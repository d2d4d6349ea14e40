// Jobs that are taken by hand: getNextJob, tokens of the taker's own, fetching the next, extending, and being forgotten.
import { describe, expect, test } from 'vitest';
import { Job } from '../../src/handle/job.js';
import type { Worker } from '../../src/worker/worker.js';
import { ENGINES, scene } from '../support/scenes/faulty-scene.js';
import { outcomeOf, sleep, until } from '../support/wait/until.js';
import { paced } from '../support/wait/pace.js';
import { stopwatch } from '../support/wait/stopwatch.js';

async function take(worker: Worker, token?: string): Promise<Job> {
  const job = await worker.getNextJob(token, { block: false });
  if (job === undefined) throw new Error('There is no job to take.');
  return job;
}

describe.each(ENGINES)('jobs taken by hand on %s', (engine) => {
  test('are taken, changed and finished with a token of the taker', async () => {
    const { add, record, worker, inner, queue } = await scene(engine);
    const id = await add();
    const { worker: hand } = worker(null);
    const job = await take(hand, 'my-token');
    expect(job).toMatchObject({ id, token: 'my-token' });
    expect(job.lock.held).toBe(true);
    expect((await inner.locks(queue, { jobIds: [id] }))[0]?.token).toBe(job.lock.token);
    await job.updateProgress(50);
    await job.log('half way');
    expect(await job.moveToCompleted('done', 'my-token', false)).toEqual([]);
    expect(await record(id)).toMatchObject({ state: 'completed', returnvalue: '"done"', progress: '50', attemptsMade: 1 });
    expect(job.lock.held).toBe(false);
  });

  test('use the real token by default, and a wrong one is refused and changes nothing', async () => {
    const { add, record, worker } = await scene(engine);
    const id = await add();
    const { worker: hand } = worker(null);
    const job = await take(hand);
    await expect(job.moveToCompleted('x', 'somebody else', false)).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(await record(id)).toMatchObject({ state: 'active' });
    expect(job.lock.held).toBe(true);
    await job.moveToFailed(new Error('given up'), job.token);
    expect(await record(id)).toMatchObject({ state: 'failed', failedReason: 'given up' });
  });

  test('bring the next job under the same token with moveToCompleted, in one call', async () => {
    const { add, record, worker, store } = await scene(engine);
    const ids = [await add(), await add(), await add()];
    const { worker: hand } = worker(null);
    const done: string[] = [];
    let job: Job | undefined = await take(hand, 'mine');
    const claims = store.calls('claim');
    while (job !== undefined) {
      done.push(job.id);
      expect(job.lock.held).toBe(true);
      // By job and token, as a lock manager does it.
      expect(await hand.extendJobLocks([job.id], ['mine'], 60_000)).toEqual([]);
      const [json, nextId] = await job.moveToCompleted('done', 'mine', true);
      job = json === undefined ? undefined : Job.fromJSON(hand, json, nextId);
    }
    expect(done).toEqual(ids);
    expect(store.calls('claim')).toBe(claims);
    for (const id of ids) expect(await record(id)).toMatchObject({ state: 'completed', attemptsStarted: 1 });
  });

  test('last exactly as long as extendLock says, and trust ends before that', async () => {
    const { add, worker, inner, queue } = await scene(engine);
    const id = await add();
    const { worker: hand } = worker(null, { lockDuration: 10_000 });
    const job = await take(hand, 'mine');
    for (const duration of [60_000, paced(1000)]) {
      const asked = performance.now();
      expect(await job.extendLock('mine', duration)).toBe(1);
      const { endsInMs = 0 } = (await inner.locks(queue, { jobIds: [id] }))[0] ?? {};
      expect(endsInMs).toBeGreaterThan(duration - (performance.now() - asked) - 5);
      // Stores may round up.
      expect(endsInMs).toBeLessThanOrEqual(duration + 1);
      expect(job.lock.expiresAt - Date.now()).toBeLessThan(endsInMs);
    }
    await until('the lock to end in the store', async () => {
      const { endsInMs = 0 } = (await inner.locks(queue, { jobIds: [id] }))[0] ?? {};
      return endsInMs <= 0;
    });
    expect(job.lock.held).toBe(false);
  });

  test('go back when forgotten, and their taker can no longer finish, extend or write them', async () => {
    const { add, worker, reaches, inner, queue } = await scene(engine);
    const id = await add();
    const { worker: hand } = worker(null, { lockDuration: paced(200) });
    const job = await take(hand, 'mine');
    const { worker: other } = worker((again) => `run by another with fence ${again.lock.fence > job.lock.fence}`, {
      stalledInterval: 50,
    });
    const stalled: unknown[] = [];
    other.on('stalled', (...args) => stalled.push(args));
    const record = await reaches(id, 'completed');
    expect(record).toMatchObject({ stalledCounter: 1, attemptsStarted: 2, returnvalue: '"run by another with fence true"' });
    expect(stalled).toEqual([[id, 'active']]);
    expect(JSON.parse(record.lostBy ?? '{}')).toMatchObject({ pid: process.pid, found: 'lock-expired' });
    expect(job.lock.held).toBe(false);
    expect(await job.extendLock('mine', 1000)).toBe(0);
    expect(await hand.extendJobLocks([id], ['mine'], 1000)).toEqual([id]);
    for (const late of [
      () => job.moveToCompleted('late', 'mine', false),
      () => job.moveToFailed(new Error('late'), 'mine'),
      () => job.moveToDelayed(Date.now() + 1000, 'mine'),
      () => job.moveToWait('mine'),
      () => job.updateProgress(99),
      () => job.updateData({ late: true }),
      () => job.log('late'),
    ]) {
      await expect(late()).rejects.toMatchObject({ code: 'LOCK_LOST' });
    }
    expect((await inner.jobs(queue, [id])).jobs).toEqual([record]);
  });

  test('accept a late finish as long as no other worker has the job', async () => {
    const { add, worker, record } = await scene(engine);
    const id = await add();
    const { worker: hand } = worker(null, { lockDuration: paced(100), skipStalledCheck: true });
    const job = await take(hand, 'mine');
    await until('trust to end', () => !job.lock.held);
    await sleep(50);
    await job.moveToCompleted('late', 'mine', false);
    expect(await record(id)).toMatchObject({ state: 'completed', returnvalue: '"late"', stalledCounter: 0 });
  });

  test('are awaited by getNextJob, also until they are due', async () => {
    const { add, worker } = await scene(engine);
    const { worker: hand } = worker(null);
    const coming = hand.getNextJob('a');
    expect(await outcomeOf(coming, 50)).toBe('pending');
    const id = await add();
    expect((await coming)?.id).toBe(id);
    const delayed = await add({ delay: 200 });
    const took = stopwatch();
    expect((await hand.getNextJob('b'))?.id).toBe(delayed);
    expect(took()).toBeLessThan(paced(1500));
  });

  test('are not awaited by getNextJob without blocking, and for drainDelay with it', async () => {
    const { worker } = await scene(engine);
    const { worker: hand } = worker(null, { drainDelay: 1 });
    expect(await hand.getNextJob('a', { block: false })).toBeUndefined();
    const start = performance.now();
    expect(await hand.getNextJob('a')).toBeUndefined();
    expect(performance.now() - start).toBeGreaterThan(900);
  });

  test('are found after a wake-up that came while no call waited', async () => {
    const { add, worker, store } = await scene(engine);
    const { worker: hand } = worker(null);
    await hand.getNextJob('a', { block: false });
    // The job comes after the queue was found empty, and before the taker begins to wait.
    const held = store.on('claim', { fault: 'hold-reply', times: 1 });
    const taking = hand.getNextJob('a');
    await until('the empty answer to be held', () => held.holding > 0);
    const id = await add();
    const took = stopwatch();
    held.release();
    expect((await taking)?.id).toBe(id);
    expect(took()).toBeLessThan(paced(1000));
  });

  test('are returned again when the reply of the claim is lost, and trusted from the first try', async () => {
    const { add, worker, store, inner, queue } = await scene(engine);
    const id = await add();
    store.on('claim', { fault: 'drop-reply', times: 3 });
    const { worker: hand } = worker(null, { lockDuration: paced(2000) });
    const job = await take(hand, 'mine');
    expect(job).toMatchObject({ id, attemptsStarted: 1 });
    const left = job.lock.expiresAt - Date.now();
    expect(left).toBeLessThan((await inner.locks(queue, { jobIds: [id] }))[0]?.endsInMs ?? 0);
  });

  test('count under the limiter', async () => {
    const { add, worker } = await scene(engine);
    for (let count = 0; count < 3; count += 1) await add();
    const { worker: hand } = worker(null, { limiter: { max: 2, duration: 60_000 } });
    await take(hand);
    await take(hand);
    expect(await hand.getNextJob('late', { block: false })).toBeUndefined();
  });

  test('are not handed back as strays after a lost reply beside a running processor', async () => {
    const { add, worker, store, record } = await scene(engine);
    const { worker: both } = worker(() => 'run', { autorun: false });
    const byHand = await add();
    const job = await take(both, 'mine');
    const ran = await add();
    store.on('claim', { fault: 'drop-reply', times: 1 });
    const owned = store.called('locks');
    both.run().catch(() => undefined);
    await owned;
    await until('the other job to be run', async () => (await record(ran))?.state === 'completed');
    expect(await record(byHand)).toMatchObject({ state: 'active' });
    await job.moveToCompleted('by hand', 'mine', false);
    expect(await record(byHand)).toMatchObject({ state: 'completed', attemptsStarted: 1 });
  });

  test('are found after the death of their taker by a worker with startStalledCheckTimer', async () => {
    const { add, worker, reaches } = await scene(engine);
    const id = await add();
    const { worker: forgetful } = worker(null, { lockDuration: paced(100), skipStalledCheck: true });
    await take(forgetful, 'mine');
    const { worker: hand } = worker(null, { stalledInterval: 50 });
    await hand.startStalledCheckTimer();
    expect(await reaches(id, 'waiting')).toMatchObject({ stalledCounter: 1 });
  });
});
