// Groups of jobs, as users of BullMQ Pro know them, on every store.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import { Queue as BullQueue } from '../../src/compat/bull/queue.js';
import { checkDefaultJobOptions, checkJobOptions } from '../../src/job/options.js';
import { Queue } from '../../src/queue/queue.js';
import type { Store } from '../../src/store/contract/index.js';
import { checkWorkerOptions } from '../../src/worker/options.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { newGate, openGates } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

function kept<T extends { close(force?: boolean): Promise<void> }>(made: T): T {
  onTestFinished(() => {
    openGates();
    return made.close();
  });
  return made;
}

const refusal = (option: string, code = 'INVALID_OPTION') => expect.objectContaining({ code, option }) as Error;

describe('the job option group', () => {
  test.each<unknown>(['a', '7', 'user:{7} 😀', ' ', 'x'.repeat(500), 0, 7, -3, Number.MAX_SAFE_INTEGER])(
    'accepts the id %j',
    (id) => expect(() => checkJobOptions({ group: { id } })).not.toThrow(),
  );

  test.each<[unknown, string]>([
    [null, 'group'],
    ['a', 'group'],
    [7, 'group'],
    [['a'], 'group'],
    [{}, 'group.id'],
    [{ id: '' }, 'group.id'],
    [{ id: null }, 'group.id'],
    [{ id: ['a'] }, 'group.id'],
    [{ id: { a: 1 } }, 'group.id'],
    [{ id: true }, 'group.id'],
    [{ id: 1.5 }, 'group.id'],
    [{ id: Number.NaN }, 'group.id'],
    [{ id: Number.POSITIVE_INFINITY }, 'group.id'],
    [{ id: 2 ** 53 }, 'group.id'],
    [{ id: 'x'.repeat(501) }, 'group.id'],
    [{ id: 'a\0b' }, 'group.id'],
    [{ id: '\ud800' }, 'group.id'],
    [{ id: 'a', idd: 1 }, 'group.idd'],
  ])('refuses %j and names %s', (group, option) => expect(() => checkJobOptions({ group })).toThrow(refusal(option)));

  test('refuses a priority within the group, and names the job option', () => {
    const error = { code: 'OPTION_UNSUPPORTED', message: expect.stringContaining('the job option priority') as string };
    expect(() => checkJobOptions({ group: { id: 'a', priority: 3 } })).toThrow(expect.objectContaining(error));
  });

  test('refuses a lock key beside the group, also as a default of the queue', async () => {
    expect(() => checkDefaultJobOptions({ group: { id: 'a' }, lockKey: 'k' })).toThrow(refusal('group'));
    const queue = kept(new Queue('work', { connection: 'memory:', defaultJobOptions: { lockKey: 'k' } }));
    await expect(queue.add('x', {}, { group: { id: 'a' } })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('a job has a lock key or a group') as string,
    });
    expect(await queue.count()).toBe(0);
  });
});

describe('the worker option group', () => {
  test.each<object>([{}, { concurrency: 1 }, { concurrency: 2 ** 31 - 1 }, { limit: { max: 1, duration: 1 } }])(
    'accepts %j',
    (group) => expect(() => checkWorkerOptions({ group })).not.toThrow(),
  );

  test.each<[unknown, string]>([
    [null, 'group'],
    [3, 'group'],
    [[], 'group'],
    [{ concurrency: 0 }, 'group.concurrency'],
    [{ concurrency: -1 }, 'group.concurrency'],
    [{ concurrency: 1.5 }, 'group.concurrency'],
    [{ concurrency: Number.NaN }, 'group.concurrency'],
    [{ concurrency: '2' }, 'group.concurrency'],
    [{ concurrency: 2 ** 31 }, 'group.concurrency'],
    [{ concurrency: null }, 'group.concurrency'],
    [{ concurency: 2 }, 'group.concurency'],
    [{ limit: 5 }, 'group.limit'],
    [{ limit: null }, 'group.limit'],
    [{ limit: {} }, 'group.limit.max'],
    [{ limit: { max: 0, duration: 1 } }, 'group.limit.max'],
    [{ limit: { max: 1.5, duration: 1 } }, 'group.limit.max'],
    [{ limit: { max: 2 ** 31, duration: 1 } }, 'group.limit.max'],
    [{ limit: { max: 1 } }, 'group.limit.duration'],
    [{ limit: { max: 1, duration: 0 } }, 'group.limit.duration'],
    [{ limit: { max: 1, duration: -5 } }, 'group.limit.duration'],
    [{ limit: { max: 1, duration: 2 ** 31 } }, 'group.limit.duration'],
  ])('refuses %j and names %s', (group, option) =>
    expect(() => checkWorkerOptions({ group } as never)).toThrow(expect.objectContaining({ option })),
  );
});

describe.each(ENGINES)('groups on %s', (engine: Engine) => {
  async function start() {
    const { inner: connection, store, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    return { connection, store, name, queue };
  }

  const bulk = (groups: (string | undefined)[]) =>
    groups.map((id, n) => ({ name: `${id ?? 'plain'}${n}`, data: {}, opts: id === undefined ? {} : { group: { id } } }));

  test('a job shows the id of its group, also when it is read again', async () => {
    const { queue } = await start();
    const job = await queue.add('x', {}, { group: { id: 7 } });
    expect([job.gid, (await queue.getJob(job.id))?.gid, (await queue.add('plain')).gid]).toEqual(['7', '7', undefined]);
    expect(job.opts.group).toEqual({ id: 7 });
    expect(await queue.getGroupJobsCount(7)).toBe(1);
    expect(await queue.getGroupJobsCount('7')).toBe(1);
  });

  test('jobs of different groups and jobs without a group take turns', async () => {
    const { queue, name, connection } = await start();
    await queue.addBulk(bulk(['a', 'a', 'a', 'b', undefined, undefined]));
    const met: string[] = [];
    kept(new Worker(name, async (job: Job) => void met.push(job.name), { connection }));
    await until('all jobs to run', () => met.length === 6);
    expect(met).toEqual(['plain4', 'a0', 'b3', 'plain5', 'a1', 'a2']);
  });

  test('a worker with group.concurrency limits each group for all workers', async () => {
    const { queue, name, connection } = await start();
    await queue.addBulk(bulk(['a', 'a', 'a', 'a', 'b', 'b', 'b', undefined]));
    const gate = newGate();
    const running = new Map<string, number>();
    const handler = async (job: Job): Promise<void> => {
      running.set(job.gid ?? '', (running.get(job.gid ?? '') ?? 0) + 1);
      await gate.opened;
    };
    kept(new Worker(name, handler, { connection, concurrency: 10, group: { concurrency: 2 } }));
    await until('the places to be taken', async () => (await queue.getActiveCount()) === 5);
    // This worker has no such option, and is bound by the limit all the same.
    kept(new Worker(name, handler, { connection, concurrency: 10 }));
    await queue.add('last', {});
    await until('the job without a group to run', () => running.get('') === 2);
    expect(Object.fromEntries(running)).toEqual({ a: 2, b: 2, '': 2 });
    expect(await queue.getGroups()).toEqual([
      { id: 'a', status: 'maxed', active: 2 },
      { id: 'b', status: 'maxed', active: 2 },
    ]);
    gate.open();
    await until('all jobs to end', async () => (await queue.getCompletedCount()) === 9);
    expect([await queue.getGroupsCount(), await queue.getGroups()]).toEqual([0, []]);
  });

  /** Ends all sessions of the queue and forgets its settings, as in a store that restarts empty. */
  async function loseData(store: Store, name: string): Promise<void> {
    const sessions = await store.sessions(name);
    await store.closeSessions(
      sessions.map(({ id }) => ({ queue: name, id })),
      'closed',
    );
    await store.forget(name, { all: true });
    expect((await store.status(name, { groups: { limit: 1 } })).groups).toEqual({ groups: [] });
  }

  test('a worker sets its limits again when it has lost its session with the data of the queue', async () => {
    const { queue, name, store, connection } = await start();
    const gate = newGate();
    const worker = kept(new Worker(name, () => gate.opened, { connection: store, concurrency: 10, group: { concurrency: 1 } }));
    await worker.waitUntilReady();
    const held = store.on('openSession', { fault: 'hang' });
    await loseData(connection, name);
    await queue.addBulk(bulk(['a', 'a', 'a', 'a']));
    held.remove();
    await until('a job to run', async () => (await queue.getActiveCount()) > 0);
    expect(await queue.getGroups()).toEqual([{ id: 'a', status: 'maxed', active: 1 }]);
  });

  test('a worker claims nothing under a session that it opened after its limits, in a store that has lost them', async () => {
    const { queue, name, store, connection } = await start();
    const gate = newGate();
    const worker = kept(new Worker(name, () => gate.opened, { connection: store, concurrency: 10, group: { concurrency: 1 } }));
    await worker.waitUntilReady();
    const held = store.on('openSession', { fault: 'hang' });
    const opening = store.called('openSession', store.calls('openSession') + 1);
    const [first] = await connection.sessions(name);
    await connection.closeSessions([{ queue: name, id: first?.id ?? '' }], 'closed');
    await queue.add('wakes the worker', {});
    // The worker is about to open its next session. All that it has set before is lost now.
    await opening;
    await queue.drain();
    await loseData(connection, name);
    await queue.addBulk(bulk(['a', 'a', 'a', 'a']));
    held.remove();
    await until('a job to run', async () => (await queue.getActiveCount()) > 0);
    expect(await queue.getGroups()).toEqual([{ id: 'a', status: 'maxed', active: 1 }]);
  });

  test('a worker claims nothing while the store that has lost its limits does not take them', async () => {
    const { queue, name, store, connection } = await start();
    const gate = newGate();
    const worker = kept(new Worker(name, () => gate.opened, { connection: store, concurrency: 10, group: { concurrency: 1 } }));
    worker.on('error', () => undefined);
    await worker.waitUntilReady();
    const held = store.on('openSession', { fault: 'hang' });
    const rule = store.on('configure', { fault: 'fail' });
    const opened = store.answered('openSession', store.calls('openSession') + 1);
    const failed = store.called('configure', store.calls('configure') + 2);
    await loseData(connection, name);
    await queue.addBulk(bulk(['a', 'a', 'a', 'a']));
    held.remove();
    await Promise.all([opened, failed]);
    expect(await queue.getActiveCount()).toBe(0);
    rule.remove();
    await until('a job to run', async () => (await queue.getActiveCount()) > 0);
    expect(await queue.getGroups()).toEqual([{ id: 'a', status: 'maxed', active: 1 }]);
  });

  test('a job taken by hand counts under the limits of the worker option when the store has lost them', async () => {
    const { queue, name, connection } = await start();
    const worker = kept(new Worker(name, null, { connection, group: { concurrency: 1 } }));
    expect(await worker.getNextJob('token', { block: false })).toBeUndefined();
    await loseData(connection, name);
    await queue.addBulk(bulk(['a', 'a']));
    expect((await worker.getNextJob('token', { block: false }))?.name).toBe('a0');
    expect(await worker.getNextJob('token', { block: false })).toBeUndefined();
    expect(await queue.getGroups()).toEqual([{ id: 'a', status: 'maxed', active: 1 }]);
  });

  test.each([false, true])('a running worker keeps its limits when the queue is obliterated, with force %j', async (force) => {
    const { queue, name, connection } = await start();
    const gate = newGate();
    const worker = kept(new Worker(name, () => gate.opened, { connection, concurrency: 10, group: { concurrency: 1 } }));
    worker.on('error', () => undefined);
    await worker.waitUntilReady();
    if (force) {
      await queue.addBulk(bulk(['a', 'a']));
      await until('a job to run', async () => (await queue.getActiveCount()) === 1);
    }
    await queue.setGroupConcurrency('a', 5);
    await queue.obliterate({ force });
    await queue.addBulk(bulk(['a', 'a', 'a', 'a', 'b', 'b']));
    await until('a job of each group to run', async () => (await queue.getActiveCount()) > 1);
    expect(await queue.getGroups()).toEqual([
      { id: 'a', status: 'maxed', active: 1 },
      { id: 'b', status: 'maxed', active: 1 },
    ]);
  });

  test('an obliterated queue without workers has no limits of groups', async () => {
    const { queue, name, connection } = await start();
    const worker = kept(new Worker(name, async () => 1, { connection, group: { concurrency: 1 } }));
    await worker.waitUntilReady();
    await worker.close();
    await queue.obliterate();
    await queue.addBulk(bulk(['a', 'a', 'a']));
    const gate = newGate();
    kept(new Worker(name, () => gate.opened, { connection, concurrency: 10 }));
    await until('all jobs to run', async () => (await queue.getActiveCount()) === 3);
  });

  test('a group may have a concurrency of its own, until it is removed', async () => {
    const { queue, name, connection } = await start();
    expect(await queue.getGroupConcurrency('a')).toBeNull();
    await queue.setGroupConcurrency('a', 3);
    expect(await queue.getGroupConcurrency('a')).toBe(3);
    await queue.addBulk(bulk(['a', 'a', 'a', 'a', 'b', 'b']));
    const gate = newGate();
    kept(new Worker(name, () => gate.opened, { connection, concurrency: 10, group: { concurrency: 1 } }));
    await until('the places to be taken', async () => (await queue.getActiveCount()) === 4);
    expect([await queue.getGroupActiveCount('a'), await queue.getGroupActiveCount('b')]).toEqual([3, 1]);
    await queue.removeGroupConcurrency('a');
    expect(await queue.getGroupConcurrency('a')).toBeNull();
    await queue.setGroupConcurrency('b', 2);
    await until('the second job of b to run', async () => (await queue.getGroupActiveCount('b')) === 2);
  });

  test('a paused group waits, and the others run', async () => {
    const { queue, name, connection } = await start();
    await queue.pauseGroup('a');
    expect([await queue.isGroupPaused('a'), await queue.isGroupPaused('b')]).toEqual([true, false]);
    const [held] = await queue.addBulk(bulk(['a', 'b']));
    kept(new Worker(name, async () => 1, { connection }));
    await until('the job of b to end', async () => (await queue.getCompletedCount()) === 1);
    expect([await held?.getState(), await queue.getGroups()]).toEqual(['waiting', [{ id: 'a', status: 'paused', active: 0 }]]);
    await queue.resumeGroup('a');
    await until('the job of a to end', async () => (await held?.getState()) === 'completed');
  });

  test('a worker with group.limit starts as many jobs of a group per window as allowed', async () => {
    const { queue, name, connection } = await start();
    await queue.addBulk(bulk(['a', 'a', 'a', 'b', undefined]));
    const met: string[] = [];
    const limit = { max: 2, duration: 60_000 };
    kept(new Worker(name, async (job: Job) => void met.push(job.name), { connection, group: { limit } }));
    await until('all jobs within the limit to end', async () => (await queue.getCompletedCount()) === 4);
    expect([...met].sort()).toEqual(['a0', 'a1', 'b3', 'plain4']);
    expect(await queue.getGroupRateLimitTtl('a')).toBeGreaterThan(0);
    expect(await queue.getGroupRateLimitTtl('b')).toBe(-2);
    expect(await queue.getGroups()).toEqual([{ id: 'a', status: 'limited', active: 0 }]);
    await queue.rateLimitGroup('a', 0);
    await until('the last job to end', async () => (await queue.getCompletedCount()) === 5);
  });

  test('a worker is not woken too late when the window of a group ends', async () => {
    const { queue, name, connection } = await start();
    const times: number[] = [];
    await queue.addBulk(bulk(['a', 'a', 'a']));
    const limit = { max: 1, duration: 300 };
    // On the clock of the store, which measures the windows.
    const note = async ({ processedOn = 0 }: Job): Promise<void> => void times.push(processedOn);
    kept(new Worker(name, note, { connection, drainDelay: 60, group: { limit } }));
    await until('all jobs to run', () => times.length === 3);
    const gaps = times.slice(1).map((time, n) => time - (times[n] ?? 0));
    for (const gap of gaps) expect(gap).toBeGreaterThan(limit.duration - 5);
  });

  test('a group may have a rate limit of its own, until it is removed', async () => {
    const { queue, name, connection } = await start();
    await queue.setGroupRateLimit('a', 1, 60_000);
    expect([await queue.getGroupRateLimit('a'), await queue.getGroupRateLimit('b')]).toEqual([
      { max: 1, duration: 60_000 },
      null,
    ]);
    await queue.addBulk(bulk(['a', 'a', 'b', 'b']));
    kept(new Worker(name, async () => 1, { connection }));
    await until('the jobs within the limit to end', async () => (await queue.getCompletedCount()) === 3);
    expect(await queue.getGroupJobsCount('a')).toBe(1);
    await queue.removeGroupRateLimit('a');
    await until('the last job to end', async () => (await queue.getCompletedCount()) === 4);
    expect(await queue.getGroupRateLimit('a')).toBeNull();
  });

  test('rateLimitGroup of a worker holds up the group of the job, which waits at the front again', async () => {
    const { queue, name, connection } = await start();
    const [first] = await queue.addBulk(bulk(['a', 'a', 'b']));
    const met: string[] = [];
    const worker: Worker = new Worker(
      name,
      async (job: Job) => {
        met.push(job.name);
        if (met.length > 1) return;
        await worker.rateLimitGroup(job, 60_000);
        throw Worker.RateLimitError();
      },
      { connection },
    );
    kept(worker);
    await until('the job of b to end', async () => (await queue.getCompletedCount()) === 1);
    expect(met).toEqual(['a0', 'b2']);
    expect((await queue.getGroupJobs('a')).map((job) => job.name)).toEqual(['a0', 'a1']);
    expect([await first?.getState(), (await queue.getJob(first?.id ?? ''))?.attemptsMade]).toEqual(['waiting', 0]);
    await queue.rateLimitGroup('a', 0);
    await until('all jobs to end', async () => (await queue.getCompletedCount()) === 3);
    expect(met.slice(2)).toEqual(['a0', 'a1']);
  });

  test('rateLimitGroup refuses a job without a group, and times that cannot be meant', async () => {
    const { queue, name, connection } = await start();
    const worker = kept(new Worker(name, null, { connection }));
    const [job, grouped] = [await queue.add('x', {}), await queue.add('y', {}, { group: { id: 'a' } })];
    const message = expect.stringContaining(`Job ${job.id} has no group`);
    await expect(worker.rateLimitGroup(job, 5)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'job.gid', message });
    for (const ms of [-1, 1.5, Number.NaN, 2 ** 31])
      await expect(worker.rateLimitGroup(grouped, ms)).rejects.toMatchObject({ option: 'rateLimitGroup' });
    expect(await queue.getGroupRateLimitTtl('a')).toBe(-2);
  });

  test('the methods of the queue refuse ids and limits that cannot be meant, and change nothing', async () => {
    const { queue } = await start();
    const rejects = async (call: Promise<unknown>, option: string): Promise<void> =>
      expect(call).rejects.toMatchObject({ code: 'INVALID_OPTION', option });
    for (const id of ['', 'x'.repeat(501), 1.5, null, undefined, {}] as never[]) {
      await rejects(queue.pauseGroup(id), 'groupId');
      await rejects(queue.getGroupJobs(id), 'groupId');
      await rejects(queue.setGroupConcurrency(id, 1), 'groupId');
    }
    for (const value of [0, -1, 1.5, Number.NaN, 2 ** 31, '3'] as never[]) {
      await rejects(queue.setGroupConcurrency('a', value), 'concurrency');
      await rejects(queue.setGroupRateLimit('a', value, 5), 'max');
      await rejects(queue.setGroupRateLimit('a', 5, value), 'duration');
    }
    await rejects(queue.rateLimitGroup('a', -1), 'expireTimeMs');
    await rejects(queue.getGroups(-1), 'start');
    await rejects(queue.getGroups(0, 1.5), 'end');
    expect(await queue.getGroupsCount()).toBe(0);
  });

  test('groups and their waiting jobs are read in pages', async () => {
    const { queue } = await start();
    const names = Array.from({ length: 1_203 }, (_, n) => `g${String(n).padStart(4, '0')}`);
    await queue.addBulk(bulk([...names, 'g0005', 'g0005']));
    expect(await queue.getGroupsCount()).toBe(1_203);
    const ids = (groups: { id: string }[]) => groups.map(({ id }) => id);
    expect(ids(await queue.getGroups())).toEqual(names.slice(0, 100));
    expect(ids(await queue.getGroups(495, 504))).toEqual(names.slice(495, 505));
    expect(ids(await queue.getGroups(1_200, -1))).toEqual(names.slice(1_200));
    expect((await queue.getGroupJobs('g0005')).map(({ name }) => name)).toEqual(['g00055', 'g00051203', 'g00051204']);
    expect((await queue.getGroupJobs('g0005', 1, 1)).map(({ name }) => name)).toEqual(['g00051203']);
    expect((await queue.getGroupJobs('g0005', -1)).map(({ name }) => name)).toEqual(['g00051204']);
    expect(await queue.getWaitingCount()).toBe(1_205);
  });

  test('a worker claims nothing until the store has taken its group limits', async () => {
    const { queue, name, store } = await start();
    await queue.addBulk(bulk(['a', 'a', 'a']));
    const gate = newGate();
    const errors: Error[] = [];
    store.on('configure', { fault: 'fail', times: 2 });
    store.on('configure', { fault: 'drop-reply', after: 2, times: 1 });
    const worker = kept(new Worker(name, () => gate.opened, { connection: store, concurrency: 5, group: { concurrency: 1 } }));
    worker.on('error', (error) => errors.push(error));
    await until('a job to run', async () => (await queue.getActiveCount()) > 0);
    expect([await queue.getActiveCount(), errors.length]).toEqual([1, 1]);
    store.clear();
  });

  test('a job taken by hand counts under the limits of the worker option', async () => {
    const { queue, name, connection } = await start();
    await queue.addBulk(bulk(['a', 'a']));
    const worker = kept(new Worker(name, null, { connection, group: { concurrency: 1 } }));
    const job = await worker.getNextJob('token', { block: false });
    expect(job?.name).toBe('a0');
    expect(await worker.getNextJob('token', { block: false })).toBeUndefined();
    await job?.moveToCompleted(1, 'token', false);
    expect((await worker.getNextJob('token', { block: false }))?.name).toBe('a1');
  });

  test('the jobs of a schedule wait in the group of its template', async () => {
    const { queue } = await start();
    const repeat = { every: 3_600_000 };
    const job = await queue.upsertJobScheduler('hourly', repeat, { name: 'x', opts: { group: { id: 7 } } });
    expect([job?.gid, await queue.getGroupJobsCount(7)]).toEqual(['7', 1]);
    const both = { name: 'x', opts: { group: { id: 7 }, lockKey: 'k' } };
    await expect(queue.upsertJobScheduler('other', repeat, both)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      option: 'group',
    });
  });

  test('the option limiter.groupKey of Bull limits each group of jobs by a field of their data', async () => {
    const { connection, name } = await start();
    const limiter = { max: 1, duration: 60_000, groupKey: 'user.id' };
    const queue = kept(new BullQueue(name, { connection, limiter }));
    const met: unknown[] = [];
    void queue.process(5, async (job) => void met.push(job.data));
    await queue.addBulk([{ data: { user: { id: 1 } } }, { data: { user: { id: 2 } } }, { data: {} }]);
    const held = await queue.add({ user: { id: 1 } });
    await until('a job of each group to be completed', async () => (await queue.core.getCompletedCount()) === 3);
    expect(met).toHaveLength(3);
    expect(await held.getState()).toBe('waiting');
    expect((await queue.core.getGroups()).map(({ id, status }) => [id, status])).toEqual([['1', 'limited']]);
  });
});
