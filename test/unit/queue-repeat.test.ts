// The older `repeat` option of add, strategies of the user, and the class JobScheduler, on the memory store.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RepeatStrategy } from '../../src/job/schedule.js';
import { JobScheduler } from '../../src/queue/job-scheduler.js';
import { Queue } from '../../src/queue/queue.js';
import type { QueueOptions } from '../../src/queue/queue-options.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { Worker } from '../../src/worker/worker.js';
import { until } from '../support/wait/until.js';

const MINUTE = 60_000;

function make(options: QueueOptions = {}): { queue: Queue; clock: ManualClock; store: MemoryStore } {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const queue = new Queue('q', { connection: store, ...options });
  onTestFinished(() => queue.close());
  return { queue, clock, store };
}

describe('the option repeat', () => {
  test('makes a schedule on the multiples of its interval, and adding it again changes nothing', async () => {
    const { queue, clock } = make();
    clock.advance(1234);
    const job = await queue.add('mail', { to: 'ada' }, { repeat: { every: MINUTE }, attempts: 2 });
    const at = Math.ceil(clock.wall() / MINUTE) * MINUTE;
    expect([job.id, job.repeatJobKey, job.delay]).toEqual([`repeat:mail::::60000:${at}`, 'mail::::60000', at - clock.wall()]);
    expect(job.opts).toMatchObject({ repeat: { every: MINUTE, count: 1, offset: 0 }, prevMillis: at, attempts: 2 });
    expect((await queue.add('mail', { to: 'eve' }, { repeat: { every: MINUTE } })).id).toBe(job.id);
    expect(await queue.count()).toBe(1);
    const [shown] = await queue.getRepeatableJobs();
    const empty = { id: null, endDate: null, tz: null, pattern: null };
    expect(shown).toEqual({ key: 'mail::::60000', name: 'mail', every: '60000', next: at, ...empty });
    expect(await queue.removeRepeatable('mail', { every: MINUTE })).toBe(true);
    expect(await queue.removeRepeatable('mail', { every: MINUTE })).toBe(false);
    expect(await queue.count()).toBe(0);
  });

  test('with immediately is due at once, and then on the grid', async () => {
    const { queue, clock } = make();
    clock.advance(1234);
    const job = await queue.add('mail', {}, { repeat: { every: MINUTE, immediately: true } });
    expect([job.delay, await job.getState()]).toEqual([0, 'waiting']);
    const at = Math.floor(clock.wall() / MINUTE) * MINUTE;
    expect(await queue.nextTimes('mail::::60000', 2)).toEqual([at, at + MINUTE]);
  });

  test('takes key, jobId, endDate and tz into the id of its schedule', async () => {
    const { queue, clock } = make();
    const endDate = clock.wall() + 1e9;
    await queue.add('a', {}, { repeat: { pattern: '0 0 * * *', tz: 'UTC', endDate }, jobId: 'x' });
    await queue.add('a', {}, { repeat: { every: 5000, key: 'mine' } });
    const keys = (await queue.getRepeatableJobs(0, -1, true)).map(({ key }) => key);
    expect(keys.toSorted()).toEqual([`a:x:${endDate}:UTC:0 0 * * *`, 'mine']);
    expect(await queue.removeRepeatable('a', { pattern: '0 0 * * *', tz: 'UTC', endDate }, 'x')).toBe(true);
    expect(await queue.removeRepeatableByKey('mine')).toBe(true);
  });

  test('stands beside plain jobs in addBulk, which returns the jobs in their order', async () => {
    const { queue } = make();
    const repeat = { every: MINUTE };
    const added = await queue.addBulk([
      { name: 'one', data: { n: 1 } },
      { name: 'two', data: { n: 2 }, opts: { repeat } },
      { name: 'three', data: { n: 3 }, opts: { repeat } },
      { name: 'four', data: { n: 4 }, opts: { attempts: 2 } },
      { name: 'five', data: { n: 5 }, opts: { repeat } },
    ]);
    expect(added.map(({ name, data }) => [name, data.n])).toEqual([
      ['one', 1],
      ['two', 2],
      ['three', 3],
      ['four', 4],
      ['five', 5],
    ]);
    const keys = [undefined, 'two::::60000', 'three::::60000', undefined, 'five::::60000'];
    expect(added.map(({ repeatJobKey }) => repeatJobKey)).toEqual(keys);
  });

  test.each<[object, string]>([
    [{ repeat: 5 }, 'repeat'],
    [{ repeat: {} }, 'pattern'],
    [{ repeat: { every: 0 } }, 'every'],
    [{ repeat: { every: 5 }, delay: 5 }, 'opts.delay'],
    [{ repeat: { every: 5 }, deduplication: { id: 'a' } }, 'opts.deduplication'],
    [{ repeat: { every: 5 }, transaction: {} }, 'transaction'],
    [{ repeat: { every: 5 }, attempts: -1 }, 'attempts'],
    [{ repeat: { every: 5, endDate: Number.POSITIVE_INFINITY } }, 'endDate'],
  ])('refuses %j and writes nothing', async (opts, option) => {
    const { queue } = make();
    const refusal = { code: 'INVALID_OPTION', option };
    await expect(queue.add('a', {}, opts)).rejects.toMatchObject(refusal);
    await expect(
      queue.addBulk([
        { name: 'plain', data: {} },
        { name: 'a', data: {}, opts },
      ]),
    ).rejects.toMatchObject(refusal);
    expect([await queue.count(), await queue.getJobSchedulersCount()]).toEqual([0, 0]);
  });

  test('is refused if its end has passed', async () => {
    const { queue, clock } = make();
    const refused = queue.add('a', {}, { repeat: { every: 5, endDate: clock.wall() - 1 } });
    await expect(refused).rejects.toThrow('End date must be greater than current timestamp');
    expect(await queue.getJobSchedulersCount()).toBe(0);
  });

  test('is refused where a job has one result, and in a transaction of addBulk', async () => {
    const { queue } = make();
    const refusal = (option: string): object => ({ code: 'INVALID_OPTION', option });
    await expect(queue.addAndWait('a', {}, { repeat: { every: 5 } })).rejects.toMatchObject(refusal('repeat'));
    const bulk = queue.addBulk([{ name: 'a', data: {}, opts: { repeat: { every: 5 } } }], { transaction: {} });
    await expect(bulk).rejects.toMatchObject(refusal('transaction'));
    expect(await queue.getJobSchedulersCount()).toBe(0);
  });
});

describe('a strategy of the user', () => {
  const weekly: RepeatStrategy = async (millis, { pattern }) => millis + (pattern === 'slow' ? 7 : 1) * MINUTE;

  test('computes first and later slots of patterns, in queue and worker, and not those of intervals', async () => {
    const { queue, clock, store } = make({ settings: { repeatStrategy: weekly } });
    const began = clock.wall();
    await queue.upsertJobScheduler('s', { pattern: 'slow', limit: 3 });
    expect(await queue.nextTimes('s', 5)).toEqual([7, 14, 21].map((n) => began + n * MINUTE));
    await queue.upsertJobScheduler('grid', { every: 5000 });
    expect(await queue.nextTimes('grid', 2)).toEqual([began, began + 5000]);
    const ran: string[] = [];
    const settings = { repeatStrategy: weekly };
    const worker = new Worker('q', ({ id }) => void ran.push(id), { connection: store, settings });
    onTestFinished(() => worker.close());
    await queue.promoteJobs();
    await until('the run', () => ran.includes(`repeat:s:${began + 7 * MINUTE}`));
    expect(await queue.getJobState(`repeat:s:${began + 14 * MINUTE}`)).toBe('delayed');
  });

  test.each([Number.NaN, 'soon', -5, 1e300, 0])('that returns %j is an error, and ends no schedule', async (value) => {
    const { queue } = make({ settings: { repeatStrategy: () => value as number } });
    const refusal = { code: 'INVALID_OPTION', option: 'settings.repeatStrategy' };
    await expect(queue.upsertJobScheduler('s', { pattern: 'x' })).rejects.toMatchObject(refusal);
    expect(await queue.getJobSchedulersCount()).toBe(0);
  });

  test('that is no function is refused by queue and worker', () => {
    const settings = { repeatStrategy: 5 as never };
    const refusal = expect.objectContaining({ code: 'INVALID_OPTION', option: 'settings.repeatStrategy' }) as Error;
    expect(() => new Queue('q', { connection: 'memory:', settings })).toThrow(refusal);
    expect(() => new Worker('q', () => 1, { connection: 'memory:', settings })).toThrow(refusal);
  });
});

test('JobScheduler makes, finds and removes the schedules of a queue', async () => {
  const { queue, store } = make();
  const scheduler = new JobScheduler('q', { connection: store });
  onTestFinished(() => scheduler.close());
  const job = await scheduler.upsertJobScheduler('s', { every: MINUTE }, 'mail', { a: 1 }, { attempts: 2 }, { override: true });
  expect([job?.name, job?.data, job?.repeatJobKey]).toEqual(['mail', { a: 1 }, 's']);
  expect([await scheduler.isJobScheduler('s'), await scheduler.isJobScheduler('t')]).toEqual([true, false]);
  expect(await scheduler.getScheduler('s')).toEqual(await queue.getJobScheduler('s'));
  expect([await scheduler.getSchedulersCount(), (await scheduler.getJobSchedulers()).length]).toEqual([1, 1]);
  await expect(scheduler.upsertJobScheduler('s', { every: 1 }, 'n', {}, {}, { override: false })).rejects.toThrow('override');
  expect([await scheduler.removeJobScheduler('s'), await queue.getJobSchedulersCount()]).toEqual([true, 0]);
});
