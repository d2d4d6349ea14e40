// Schedules on the memory store: from the upsert to the runs, with the worker that makes the next job.
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { JOB_CONTEXT } from '../../src/handle/job-context.js';
import type { Job } from '../../src/handle/job.js';
import { Queue } from '../../src/queue/queue.js';
import { Debts } from '../../src/store/client/debts.js';
import type { RepeatStrategy } from '../../src/job/schedule.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore, ManualClock } from '../../src/testing/index.js';
import type { WorkerOptions } from '../../src/worker/options.js';
import { Worker } from '../../src/worker/worker.js';
import { newGate } from '../support/wait/gate.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const MINUTE = 60_000;
const DAY = 86_400_000;

afterEach(() => vi.useRealTimers());

interface Made {
  store: FaultyStore;
  queue: Queue;
  worker(handler: (job: Job) => unknown, options?: WorkerOptions): { worker: Worker; errors: Error[] };
}

function make(inner = new MemoryStore(), { strategy }: { strategy?: RepeatStrategy } = {}): Made {
  const store = new FaultyStore(inner);
  const settings = strategy === undefined ? {} : { settings: { repeatStrategy: strategy } };
  const queue = new Queue('q', { connection: store, defaultJobOptions: { attempts: 3 }, ...settings });
  onTestFinished(() => queue.close());
  return {
    store,
    queue,
    worker(handler, options = {}) {
      const worker = new Worker('q', handler, { connection: store, ...options });
      const errors: Error[] = [];
      worker.on('error', (error) => errors.push(error));
      onTestFinished(() => worker.close());
      return { worker, errors };
    },
  };
}

async function nextIds(queue: Queue): Promise<string[]> {
  return (await queue.getJobs(['delayed', 'waiting'])).map(({ id }) => id);
}

describe('a schedule', () => {
  test('with an interval runs at once, and the next job exists before the handler begins', async () => {
    const { queue, store, worker } = make();
    const first = await queue.upsertJobScheduler('heart:beat', { every: MINUTE }, { name: 'beat', data: { n: 1 } });
    expect(first?.id).toMatch(/^repeat:heart:beat:\d+$/);
    // A handler that did not wait for the advance would read the jobs before it.
    store.on('schedule', { fault: 'delay', delayMs: 100 });
    const seen: string[][] = [];
    worker(async ({ id, opts }) => {
      seen.push([id, JSON.stringify(opts), ...(await nextIds(queue))]);
    });
    await until('a run', () => seen.length === 1);
    const at = Number(first?.id.split(':').at(-1));
    const [id, opts, next] = seen[0] ?? [];
    expect([id, next]).toEqual([`repeat:heart:beat:${at}`, `repeat:heart:beat:${at + MINUTE}`]);
    const repeat = { every: MINUTE, count: 1, offset: at % MINUTE };
    expect(JSON.parse(opts ?? '')).toEqual({ attempts: 3, delay: 0, prevMillis: at, repeat });
    expect(await queue.getJobScheduler('heart:beat')).toEqual({
      key: 'heart:beat',
      name: 'beat',
      next: at + MINUTE,
      iterationCount: 2,
      every: MINUTE,
      offset: at % MINUTE,
      template: { data: { n: 1 }, opts: { attempts: 3 } },
    });
  });

  test('runs each slot of a year once, in a zone whose clock changes', async () => {
    vi.useFakeTimers({ now: Date.UTC(2029, 11, 31, 12) });
    const { queue, worker } = make();
    await queue.upsertJobScheduler('daily', { pattern: '30 2 * * *', tz: 'Europe/Berlin' });
    const ran: number[] = [];
    const { errors } = worker(({ id }) => void ran.push(Number(id.split(':').at(-1))));
    for (let day = 1; day <= 365; day += 1) {
      vi.advanceTimersByTime(DAY);
      await until('the runs', () => ran.length === day);
    }
    expect(errors).toEqual([]);
    expect(new Set(ran).size).toBe(365);
    const inBerlin = new Intl.DateTimeFormat('sv', { timeZone: 'Europe/Berlin', dateStyle: 'short', timeStyle: 'short' });
    const shown = ran.map((at) => inBerlin.format(at));
    // 02:30 does not exist on the last Sunday of March.
    expect(shown.filter((time) => !time.endsWith(' 02:30'))).toEqual(['2030-03-31 03:00']);
    expect([shown[0], shown.at(-1)]).toEqual(['2030-01-01 02:30', '2030-12-31 02:30']);
  });

  test('makes one run for all slots that it missed, then follows its grid', async () => {
    const clock = new ManualClock();
    const { queue, worker } = make(new MemoryStore({ clock }));
    const began = clock.wall();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    clock.advance(10 * MINUTE + 1);
    const ran: string[] = [];
    worker(({ id }) => void ran.push(id));
    await until('the runs', () => ran.length === 1);
    expect(ran).toEqual([`repeat:s:${began}`]);
    expect(await nextIds(queue)).toEqual([`repeat:s:${began + 11 * MINUTE}`]);
  });

  test("with catchUp 'all' runs each slot that it missed, in order", async () => {
    const clock = new ManualClock();
    const { queue, worker } = make(new MemoryStore({ clock }));
    const began = clock.wall();
    await queue.upsertJobScheduler('s', { every: MINUTE, catchUp: 'all' });
    clock.advance(3 * MINUTE + 1);
    const ran: string[] = [];
    worker(({ id }) => void ran.push(id));
    await until('the runs', () => ran.length === 4);
    expect(ran).toEqual([0, 1, 2, 3].map((n) => `repeat:s:${began + n * MINUTE}`));
  });

  describe.each(['queue', 'skip'] as const)("with catchUp 'none' and overlap '%s'", (overlap) => {
    test('does not run a job whose following slot is due as well', async () => {
      const clock = new ManualClock();
      const { queue, store, worker } = make(new MemoryStore({ clock }));
      const began = clock.wall();
      await queue.upsertJobScheduler('s', { every: MINUTE, catchUp: 'none', overlap });
      clock.advance(10 * MINUTE + 1);
      const ran: string[] = [];
      const { errors } = worker(({ id }) => void ran.push(id));
      await until('the next job', async () => (await nextIds(queue)).includes(`repeat:s:${began + 11 * MINUTE}`));
      await until('the end', async () => (await queue.getJob(`repeat:s:${began}`)) === undefined);
      expect([ran, errors]).toEqual([[], []]);
      expect(await queue.getJobCounts('active', 'completed', 'failed')).toEqual({ active: 0, completed: 0, failed: 0 });
      const { events } = await store.events(queue[JOB_CONTEXT].stored, 0, 100);
      const ended = events.filter(({ jobId, name }) => jobId === `repeat:s:${began}` && name === 'completed');
      expect(ended).toMatchObject([{ returnvalue: 'null' }]);
      // The next slot comes in time.
      clock.advance(MINUTE);
      await queue.promoteJobs();
      await until('the run', () => ran.length === 1);
      expect(ran).toEqual([`repeat:s:${began + 11 * MINUTE}`]);
    });

    test('runs a job that is late by less, and a run that is repeated later', async () => {
      const clock = new ManualClock();
      const { queue, worker } = make(new MemoryStore({ clock }));
      await queue.upsertJobScheduler(
        's',
        { every: MINUTE, catchUp: 'none', overlap },
        { opts: { attempts: 2, backoff: 20 * MINUTE } },
      );
      clock.advance(MINUTE - 1);
      const ran: string[] = [];
      worker(({ id }) => {
        if (ran.push(id) === 1) throw new Error('first');
      });
      await until('the first run', () => ran.length === 1);
      await until('its failure', async () => (await queue.getJobState(ran[0] ?? '')) === 'delayed');
      clock.advance(15 * MINUTE);
      await (await queue.getJob(ran[0] ?? ''))?.promote();
      await until('the second run', () => ran.filter((id) => id === ran[0]).length === 2);
    });
  });

  test("with overlap: 'skip' makes no job while the last one runs", async () => {
    const clock = new ManualClock();
    const { queue, worker } = make(new MemoryStore({ clock }));
    await queue.upsertJobScheduler('s', { every: MINUTE, overlap: 'skip' });
    const gate = newGate();
    let runs = 0;
    worker(() => ((runs += 1) === 1 ? gate.opened : undefined), { concurrency: 5 });
    await until('the runs', () => runs === 1);
    await queue.upsertJobScheduler('s', { every: MINUTE, overlap: 'skip' });
    expect(await queue.getJobCounts('waiting', 'delayed', 'active')).toMatchObject({ waiting: 0, delayed: 0, active: 1 });
    gate.open();
    await until('the next job', async () => (await nextIds(queue)).length === 1);
    expect((await queue.getJobScheduler('s'))?.iterationCount).toBe(2);
  });

  test('ends after its limit, and its record stays', async () => {
    const clock = new ManualClock();
    const { queue, worker } = make(new MemoryStore({ clock }));
    await queue.upsertJobScheduler('s', { every: MINUTE, limit: 2, catchUp: 'all' });
    clock.advance(10 * MINUTE);
    let runs = 0;
    worker(() => void (runs += 1));
    await until('the runs', () => runs === 2);
    expect(await nextIds(queue)).toEqual([]);
    expect(await queue.getJobScheduler('s')).toMatchObject({ iterationCount: 2, limit: 2 });
    expect(await queue.nextTimes('s')).toEqual([]);
  });

  test('passes over a slot whose job id is taken', async () => {
    const clock = new ManualClock();
    const { queue, store, worker } = make(new MemoryStore({ clock }));
    const began = clock.wall();
    const job = { name: 'mine', data: '{}', opts: '{}', priority: 0, delayMs: DAY, lifo: false, timestamp: 1 };
    const ids = [0, 2].map((n) => `repeat:s:${began + n * MINUTE}`);
    await store.add(
      'q',
      ids.map((id) => ({ ...job, id })),
      { caller: 'c', seq: 1 },
    );
    expect((await queue.upsertJobScheduler('s', { every: MINUTE }))?.id).toBe(`repeat:s:${began + MINUTE}`);
    clock.advance(MINUTE + 1);
    const ran: string[] = [];
    worker(({ id }) => void ran.push(id));
    await until('the runs', () => ran.length === 1);
    expect(await queue.nextTimes('s', 2)).toEqual([began + 3 * MINUTE, began + 4 * MINUTE]);
    const pattern = { pattern: '* * * * *', tz: 'UTC' };
    await store.add('q', [{ ...job, id: `repeat:p:${began + 2 * MINUTE}` }], { caller: 'c', seq: 2 });
    await expect(queue.upsertJobScheduler('p', pattern)).rejects.toThrow('Cannot create job scheduler iteration');
  });
});

describe('Schedulers', () => {
  test('keep the slot of the same interval, and start again with another one', async () => {
    const clock = new ManualClock();
    const { queue } = make(new MemoryStore({ clock }));
    const began = clock.wall();
    await queue.upsertJobScheduler('s', { every: MINUTE, startDate: began + 500 }, { data: 1 });
    clock.advance(100);
    await queue.upsertJobScheduler('s', { every: MINUTE, startDate: began + 500 }, { data: 2 });
    expect(await nextIds(queue)).toEqual([`repeat:s:${began + 500}`]);
    expect((await queue.getJob(`repeat:s:${began + 500}`))?.data).toBe(2);
    await queue.upsertJobScheduler('s', { every: 2 * MINUTE });
    expect(await nextIds(queue)).toEqual([`repeat:s:${began + 100}`]);
    clock.advance(50);
    expect((await queue.upsertJobScheduler('s', { every: 2 * MINUTE }))?.id).toBe(`repeat:s:${began + 100}`);
    expect((await queue.getJobScheduler('s'))?.iterationCount).toBe(1);
  });

  test('make one job if many processes upsert at once', async () => {
    const { queue } = make();
    const upserts = Array.from({ length: 20 }, () => queue.upsertJobScheduler('s', { every: MINUTE }));
    const ids = (await Promise.all(upserts)).map((job) => job?.id);
    expect(new Set(ids).size).toBe(1);
    expect(await nextIds(queue)).toEqual([ids[0]]);
  });

  test('passes the options of its template to the store, for its next job and for a triggered one', async () => {
    const { queue, store } = make();
    const opts = { lockKey: 'k', priority: 2, lifo: true };
    const scheduled = store.called('schedule');
    await queue.upsertJobScheduler('a', { every: MINUTE }, { name: 'n', opts });
    const triggered = store.called('add');
    await queue.triggerJobScheduler('a');
    const added = store.called('add');
    await queue.add('n', {}, opts);
    const [, [change]] = (await scheduled).args;
    const slot = change !== undefined && 'next' in change ? change.next : undefined;
    for (const job of [slot?.job, (await triggered).args[1][0], (await added).args[1][0]]) expect(job).toMatchObject(opts);
  });

  test('list, count, pause, resume, trigger and remove', async () => {
    const clock = new ManualClock();
    const { queue } = make(new MemoryStore({ clock }));
    const began = clock.wall();
    await queue.upsertJobScheduler('a', { every: MINUTE, startDate: began + 10 });
    await queue.upsertJobScheduler('b', { pattern: '0 0 * * *', tz: 'UTC' }, { name: 'night', data: { x: 1 } });
    expect((await queue.getJobSchedulers()).map(({ key }) => key)).toEqual(['b', 'a']);
    expect((await queue.getJobSchedulers(0, 0, true)).map(({ key }) => key)).toEqual(['a']);
    expect(await queue.getJobSchedulersCount()).toBe(2);
    expect(await queue.nextTimes('b', 2)).toEqual([began + DAY, began + 2 * DAY]);
    expect(await queue.pauseJobScheduler('a')).toBe(true);
    expect(await nextIds(queue)).toEqual([`repeat:b:${began + DAY}`]);
    clock.advance(5 * MINUTE);
    expect((await queue.resumeJobScheduler('a'))?.id).toBe(`repeat:a:${began + 5 * MINUTE}`);
    const triggered = await queue.triggerJobScheduler('b');
    expect([triggered.name, triggered.data, triggered.repeatJobKey]).toEqual(['night', { x: 1 }, 'b']);
    expect((await queue.getJob(triggered.id))?.repeatJobKey).toBe('b');
    const next = await queue.getJob(`repeat:b:${began + DAY}`);
    await expect(next?.remove()).rejects.toThrow('belongs to a job scheduler and cannot be removed directly');
    expect(await queue.remove(`repeat:b:${began + DAY}`)).toBe(0);
    expect([
      await queue.removeJobScheduler('a'),
      await queue.removeJobScheduler('a'),
      await queue.pauseJobScheduler('a'),
    ]).toEqual([true, false, false]);
    await expect(queue.resumeJobScheduler('a')).rejects.toThrow('upsert it first');
    await expect(queue.triggerJobScheduler('a')).rejects.toThrow('upsert it first');
  });

  test('returns the slots of a paused schedule as resuming it makes them', async () => {
    const clock = new ManualClock();
    const { queue } = make(new MemoryStore({ clock }));
    const began = clock.wall();
    await queue.upsertJobScheduler('night', { pattern: '0 0 * * *', tz: 'UTC', limit: 3 });
    await queue.upsertJobScheduler('often', { every: MINUTE, startDate: began + 10 });
    for (const id of ['night', 'often']) await queue.pauseJobScheduler(id);
    expect(await queue.nextTimes('night', 1)).toEqual([(await queue.getJobScheduler('night'))?.next]);
    expect(await queue.nextTimes('night')).toEqual([1, 2, 3].map((n) => began + n * DAY));
    clock.advance(5 * MINUTE);
    const now = clock.wall();
    expect(await queue.nextTimes('often', 2)).toEqual([now, now + MINUTE]);
    for (const id of ['night', 'often']) {
      const [first] = await queue.nextTimes(id, 1);
      expect((await queue.resumeJobScheduler(id))?.id).toBe(`repeat:${id}:${first}`);
    }
  });

  test.each([
    ['key', 'x', 'the first argument is the id'],
    ['jobId', 'x', 'the schedule makes the ids'],
    ['count', 5, 'limit bounds them'],
    ['prevMillis', 5, 'startDate sets the first'],
  ])('refuses %s, which has no effect on a schedule', async (option, value, advice) => {
    const { queue, store } = make();
    const repeat = { every: MINUTE, [option]: value };
    await expect(queue.upsertJobScheduler('s', repeat)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      option: `repeatOpts.${option}`,
      message: expect.stringContaining(advice),
    });
    expect(store.calls('schedule')).toBe(0);
  });

  test('refuses an offset beside a pattern, except the 0 that BullMQ shows', async () => {
    const { queue } = make();
    const pattern = '0 0 * * *';
    await expect(queue.upsertJobScheduler('s', { pattern, offset: 5 })).rejects.toMatchObject({ option: 'offset' });
    expect(await queue.getJobSchedulersCount()).toBe(0);
    await queue.upsertJobScheduler('s', { pattern, offset: 0 });
    expect(await queue.getJobScheduler('s')).not.toHaveProperty('offset');
  });

  test.each([
    [null, 'repeatOpts'],
    [{ evry: 5 }, 'repeatOpts.evry'],
  ])('names its own parameter when the repeat options are %j', async (repeat, option) => {
    const { queue } = make();
    await expect(queue.upsertJobScheduler('s', repeat as never)).rejects.toMatchObject({ code: 'INVALID_OPTION', option });
  });

  test('show and remove schedules of the older repeat option', async () => {
    const { queue } = make();
    await queue.upsertJobScheduler('mail:::UTC:0 0 * * *', { pattern: '0 0 * * *', tz: 'UTC' }, { name: 'mail' });
    const [shown] = await queue.getRepeatableJobs();
    expect(shown).toMatchObject({ key: 'mail:::UTC:0 0 * * *', name: 'mail', pattern: '0 0 * * *', every: null, tz: 'UTC' });
    expect(await queue.removeRepeatable('mail', { pattern: '0 0 * * *', tz: 'UTC' })).toBe(true);
    expect(await queue.removeRepeatableByKey('mail:::UTC:0 0 * * *')).toBe(false);
  });

  test('keep their next jobs through drain and clean, and end with obliterate', async () => {
    const { queue } = make();
    await queue.upsertJobScheduler('waits', { every: MINUTE });
    await queue.upsertJobScheduler('sleeps', { pattern: '0 0 1 1 *' });
    await queue.add('other', {});
    const next = (await nextIds(queue)).filter((id) => id.startsWith('repeat:')).toSorted();
    await queue.drain(true);
    for (const type of ['delayed', 'wait'] as const) expect(await queue.clean(0, 10, type)).toEqual([]);
    expect((await nextIds(queue)).toSorted()).toEqual(next);
    await queue.obliterate();
    expect([await nextIds(queue), await queue.getJobSchedulersCount()]).toEqual([[], 0]);
  });

  test('refuse options that the schedule decides', async () => {
    const { queue } = make();
    for (const opts of [{ jobId: 'x' }, { delay: 1 }, { deduplication: { id: 'x' } }])
      await expect(queue.upsertJobScheduler('s', { every: MINUTE }, { opts: opts as object })).rejects.toThrow(
        'the schedule decides it',
      );
    await expect(queue.upsertJobScheduler('s', { every: MINUTE, overlap: 'no' as 'skip' })).rejects.toThrow('overlap');
    await expect(queue.upsertJobScheduler('s', { every: MINUTE, pattern: '* * * * *' })).rejects.toThrow(
      'Both .pattern and .every',
    );
    expect(await queue.getJobSchedulersCount()).toBe(0);
  });
});

describe('an upsert of the same schedule', () => {
  const everyDay = { pattern: '0 2 * * *', tz: 'UTC' };

  test('with a pattern keeps a slot that is due and has not run', async () => {
    const clock = new ManualClock();
    const { queue } = make(new MemoryStore({ clock }));
    const first = await queue.upsertJobScheduler('report', everyDay);
    clock.advance(DAY);
    const again = await queue.upsertJobScheduler('report', everyDay, { data: { n: 2 } });
    expect([again?.id, again?.data]).toEqual([first?.id, { n: 2 }]);
    expect(await nextIds(queue)).toEqual([first?.id]);
  });

  test('with another pattern or zone starts anew', async () => {
    const clock = new ManualClock();
    const { queue } = make(new MemoryStore({ clock }));
    const first = await queue.upsertJobScheduler('report', everyDay);
    clock.advance(DAY);
    const other = await queue.upsertJobScheduler('report', { ...everyDay, tz: 'Asia/Tokyo' });
    expect(other?.id).not.toBe(first?.id);
    expect((await queue.getJobScheduler('report'))?.next).toBeGreaterThan(clock.wall());
  });

  test('with immediately makes one job at once, not one per upsert', async () => {
    const { queue, worker } = make();
    const runs: string[] = [];
    worker(({ id }) => void runs.push(id));
    for (let n = 0; n < 5; n += 1) {
      await queue.upsertJobScheduler('s', { ...everyDay, immediately: true });
      await until('the first run', () => runs.length > 0);
    }
    expect(runs).toHaveLength(1);
    expect(await nextIds(queue)).toHaveLength(1);
  });

  test.each<[string, object]>([
    ['an end before its next slot', { endDate: Date.now() + MINUTE / 2 }],
    ['a limit that is used up', { limit: 1 }],
  ])('with %s has ended', async (_, bound) => {
    const { queue, worker } = make();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    const ran = newGate();
    worker(() => ran.open());
    await ran.opened;
    await until('the next job', async () => (await nextIds(queue)).length === 1);
    expect(await queue.upsertJobScheduler('s', { every: MINUTE, ...bound })).toBeUndefined();
    expect(await nextIds(queue)).toEqual([]);
  });

  test('with a later start waits for it', async () => {
    const { queue } = make();
    await queue.upsertJobScheduler('s', { every: MINUTE, startDate: Date.now() + MINUTE });
    const startDate = Date.now() + 60 * MINUTE;
    await queue.upsertJobScheduler('s', { every: MINUTE, startDate });
    expect((await queue.getJobScheduler('s'))?.next).toBe(startDate);
  });
});

describe('the debt of a schedule', () => {
  test('is cleared by another worker if the one that claimed cannot', async () => {
    const { queue, store, worker } = make();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    const failing = store.on('schedule', { fault: 'fail', times: 1 });
    let runs = 0;
    const { errors } = worker(() => void (runs += 1));
    await until('the runs', () => runs === 1);
    expect(failing.struck).toBe(1);
    await until('the next job', async () => (await nextIds(queue)).length === 1);
    expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining('schedule')]);
  });

  test('holds up the handler for a second at most, and is cleared later', async () => {
    const { queue, store, worker } = make();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    const hung = store.on('schedule', { fault: 'hang', times: 1 });
    onTestFinished(() => hung.release());
    let runs = 0;
    worker(() => void (runs += 1));
    await until('the runs', () => runs === 1);
    expect(hung.struck).toBe(1);
    await until('the next job', async () => (await nextIds(queue)).length === 1);
  });

  test('is cleared although a hundred other schedules cannot go on', async () => {
    const { queue, worker } = make(new MemoryStore(), { strategy: (millis) => millis });
    for (let n = 0; n < 100; n += 1) await queue.upsertJobScheduler(`broken-${n}`, { pattern: 'any' });
    const runs = new Map<string, number>();
    const repeatStrategy: RepeatStrategy = () => {
      throw new Error('no slot');
    };
    const count = ({ name }: Job) => void runs.set(name, (runs.get(name) ?? 0) + 1);
    const { errors } = worker(count, { concurrency: 10, settings: { repeatStrategy } });
    await until('the broken schedules owe a job', () => runs.size === 100);
    await queue.upsertJobScheduler('healthy', { every: 10, overlap: 'skip' });
    await until('the healthy schedule goes on', () => (runs.get('healthy') ?? 0) > 2);
    expect(errors.map(({ message }) => message)).toContain('no slot');
  });

  test('is cleared soon after the end of a job whose schedule lets no two overlap', async () => {
    const { queue, worker } = make();
    await queue.upsertJobScheduler('s', { every: 10, overlap: 'skip' });
    let runs = 0;
    const began = performance.now();
    worker(() => void (runs += 1));
    await until('ten runs', () => runs >= 10);
    // With half a second between two searches it took 4.5 s.
    expect(performance.now() - began).toBeLessThan(paced(3_000));
  });

  test('takes no room away: another call in flight claims no more jobs than there are slots', async () => {
    const memory = new MemoryStore({ lanes: 2 });
    const { store, queue, worker } = make(memory);
    await queue.addBulk(Array.from({ length: 100 }, () => ({ name: 'plain', data: {} })));
    for (let n = 0; n < 20; n += 1) {
      await queue.upsertJobScheduler(`s${n}`, { every: MINUTE });
      await queue.addBulk(Array.from({ length: 10 }, () => ({ name: 'plain', data: {} })));
    }
    // A claim with a job of a schedule waits for the advance, after its outcomes were acknowledged.
    const slow = store.on('schedule', { fault: 'delay', delayMs: 10 });
    let most = 0;
    store.on('settle', { fault: 'delay', delayMs: 2 });
    worker(
      async () => {
        most = Math.max(most, (await memory.status('q')).counts.active);
      },
      { concurrency: 6 },
    );
    await until('all are done', async () => (await queue.getCompletedCount()) === 320);
    expect(slow.struck).toBeGreaterThan(0);
    expect(most).toBe(6);
  });

  test('is cleared once if the reply to an advance is lost', async () => {
    const { queue, store, worker } = make();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    store.on('schedule', { fault: 'drop-reply', times: 1 });
    let runs = 0;
    worker(() => void (runs += 1));
    await until('the runs', () => runs === 1);
    expect(await nextIds(queue)).toHaveLength(1);
    expect((await queue.getJobScheduler('s'))?.iterationCount).toBe(2);
  });

  test('is found by a worker that starts after the one that claimed has died', async () => {
    const { queue, store, worker } = make();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    const stored = queue[JOB_CONTEXT].stored;
    const owner = { host: 'gone', pid: 1, name: 'gone', instance: 'gone' };
    await store.openSession({ queue: stored, id: 'gone', owner, durationMs: 1e6, maxStalls: 1, slots: 1 });
    const { jobs } = await store.claim(stored, { session: 'gone', seq: 1, count: 1 });
    expect(jobs[0]?.debt?.id).toBe('s');
    worker(() => undefined);
    await until('the next job', async () => (await nextIds(queue)).length === 1);
  });

  test('stays if the strategy of the user throws, and is cleared when it does not', async () => {
    let fails = true;
    const strategy: RepeatStrategy = async (millis, { pattern }, name) => {
      if (fails && millis > first) throw new Error(`no slot for ${pattern} of ${name}`);
      return millis + 5;
    };
    let first = Number.POSITIVE_INFINITY;
    const { queue, store } = make(new MemoryStore({ clock: new ManualClock() }), { strategy });
    first = Number((await queue.upsertJobScheduler('s', { pattern: 'every five' }))?.id.split(':').at(-1)) - 1;
    const errors: string[] = [];
    const onError = ({ message }: Error): void => void errors.push(message);
    const debts = new Debts({ queue: 'q', strategy, ready: async () => store, onError });
    onTestFinished(() => debts.stop());
    const owner = { host: 'h', pid: 1, name: 'n', instance: 'i' };
    await store.openSession({ queue: 'q', id: 'w', owner, durationMs: 1e6, maxStalls: 1, slots: 1 });
    const job = await queue.getJob(`repeat:s:${first + 1}`);
    await job?.promote();
    await debts.claimed(await store.claim('q', { session: 'w', seq: 1, count: 1 }));
    expect(errors).toEqual(['no slot for every five of s']);
    expect(await nextIds(queue)).toEqual([]);
    fails = false;
    await until('the next job', async () => (await nextIds(queue)).length === 1);
    expect(await nextIds(queue)).toEqual([`repeat:s:${first + 6}`]);
  });

  test('is cleared by a worker that takes jobs by hand, and by a queue that takes one', async () => {
    const { queue, store } = make();
    const [first, second] = [
      await queue.upsertJobScheduler('a', { every: MINUTE }),
      await queue.upsertJobScheduler('b', { every: MINUTE }),
    ];
    const worker = new Worker('q', undefined, { connection: store });
    onTestFinished(() => worker.close());
    const before = store.calls('schedule');
    const taken = await worker.getNextJob();
    expect(taken?.id).toBe(first?.id);
    expect(await nextIds(queue)).toHaveLength(2);
    const found = await queue.getJob(second?.id ?? '');
    await found?.takeLock();
    expect(await found?.getState()).toBe('active');
    expect(await nextIds(queue)).toHaveLength(2);
    expect(store.calls('schedule')).toBe(before + 2);
    expect((await queue.getJobSchedulers()).map(({ iterationCount }) => iterationCount)).toEqual([2, 2]);
  });

  test("is cleared by hand with catchUp 'none' as well: a missed job is passed over, but for one that is named", async () => {
    const clock = new ManualClock();
    const { queue, store } = make(new MemoryStore({ clock }));
    await queue.upsertJobScheduler('a', { every: MINUTE, catchUp: 'none' });
    const named = await queue.upsertJobScheduler('b', { every: MINUTE, catchUp: 'none' });
    clock.advance(5 * MINUTE);
    await named?.takeLock();
    expect(await named?.getState()).toBe('active');
    const plain = await queue.add('plain', {});
    const worker = new Worker('q', undefined, { connection: store });
    onTestFinished(() => worker.close());
    expect((await worker.getNextJob())?.id).toBe(plain.id);
    expect(await nextIds(queue)).toHaveLength(2);
  });
});
