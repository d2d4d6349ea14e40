// S5-1, S5-2, S5-4, S5-5, S5-8: schedules as their users see them, on every store.
import type { Queue, Store } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { ENGINES, newScene, work } from '../support/scenes/scene.js';
import { newGate } from '../support/wait/gate.js';
import { paced } from '../support/wait/pace.js';
import { timed } from '../support/wait/processor-time.js';
import { until } from '../support/wait/until.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const FAR = Date.UTC(2090, 0, 1);

const slotOf = (id: string): number => Number(id.split(':').at(-1));
const idsOf = async (queue: Queue): Promise<string[]> => (await queue.getJobs(['delayed', 'waiting'])).map(({ id }) => id);

/** The wall clock of the store: that of this process may differ from a server's. */
async function clockOf(store: Store): Promise<number> {
  return (await store.status('work', { schedules: { ids: [] } })).schedules?.now ?? 0;
}

describe.each(ENGINES)('S5 schedules on %s', (engine) => {
  test('S5-1 an interval runs at once and then on its grid, and each handler sees the next job', async () => {
    const scene = await newScene(engine);
    const { queue } = scene;
    const every = 300;
    const first = await queue.upsertJobScheduler('my:beat', { every }, { name: 'beat', data: { n: 1 } });
    const ran: { id: string; name: string; data: unknown; key: string | undefined; next: string[] }[] = [];
    const { log } = work(scene, async ({ id, name, data, repeatJobKey: key }) => {
      ran.push({ id, name, data: data as unknown, key, next: await idsOf(queue) });
    });
    await until('four runs', () => ran.length >= 4);
    expect(await queue.pauseJobScheduler('my:beat')).toBe(true);
    expect(ran[0]?.id).toBe(first?.id);
    expect(first).toMatchObject({ id: expect.stringMatching(/^repeat:my:beat:\d+$/) as string, delay: 0 });
    const began = slotOf(first?.id ?? '');
    for (const { id, name, data, key, next } of ran) {
      expect([name, data, key]).toEqual(['beat', { n: 1 }, 'my:beat']);
      expect((slotOf(id) - began) % every).toBe(0);
      expect(next).toHaveLength(1);
      expect(slotOf(next[0] ?? '')).toBeGreaterThan(slotOf(id));
    }
    expect(ran.map(({ id }) => id)).toEqual([...new Set(ran.map(({ id }) => id))]);
    expect(log.all('error')).toEqual([]);
  });

  test('S5-2 a pattern follows its time zone; a skipped time comes after the gap, a repeated one once', async () => {
    const { queue } = await newScene(engine);
    const shown = async (id: string, count: number, timeZone: string): Promise<string[]> => {
      const format = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'short', hourCycle: 'h23' });
      return (await queue.nextTimes(id, count)).map((time) => format.format(time));
    };
    const tz = 'Europe/Berlin';
    await queue.upsertJobScheduler('gap', { pattern: '30 2 * * *', tz, startDate: '2090-03-25T00:00:00Z' });
    expect(await shown('gap', 3, tz)).toEqual(['2090-03-25 02:30', '2090-03-26 03:00', '2090-03-27 02:30']);
    await queue.upsertJobScheduler('twice', { pattern: '30 2 * * *', tz, startDate: '2090-10-28T00:00:00Z' });
    expect(await shown('twice', 3, tz)).toEqual(['2090-10-28 02:30', '2090-10-29 02:30', '2090-10-30 02:30']);
    // A pattern of intervals follows the wall clock: the repeated hour has its quarters twice.
    await queue.upsertJobScheduler('often', { pattern: '*/30 2 * * *', tz, startDate: '2090-10-28T12:00:00Z' });
    expect(await queue.nextTimes('often', 4)).toEqual([0, 30, 60, 90].map((minute) => Date.UTC(2090, 9, 29, 0, minute)));
    await queue.upsertJobScheduler('tokyo', { pattern: '0 9 * * *', tz: 'Asia/Tokyo', startDate: FAR });
    expect(await queue.nextTimes('tokyo', 1)).toEqual([FAR + DAY]);
  });

  test('S5-2 a hostile pattern is refused within 50 ms, and nothing is written', async () => {
    const { queue } = await newScene(engine);
    const patterns = ['* * * *', `${'1,'.repeat(300)}1 * * * *`, '0 0 31 2 *', '*/0 * * * *', '99 * * * *', '* * * * * * *'];
    for (const pattern of patterns) {
      const refusal = { code: 'INVALID_OPTION', option: 'pattern' };
      const upsert = () => expect(queue.upsertJobScheduler('bad', { pattern }), pattern).rejects.toMatchObject(refusal);
      expect((await timed(upsert)).cpuMs, pattern).toBeLessThan(50);
    }
    expect([await queue.getJobSchedulersCount(), await queue.count()]).toEqual([0, 0]);
  });

  test('S5-4 getters show what was set and nothing else, by the next slot', async () => {
    const { queue, store } = await newScene(engine);
    const now = await clockOf(store);
    await queue.upsertJobScheduler('plain', { every: HOUR });
    const [next] = await queue.nextTimes('plain', 1);
    expect(await queue.getJobScheduler('plain')).toEqual({
      key: 'plain',
      name: 'plain',
      next,
      iterationCount: 1,
      every: HOUR,
      offset: (next ?? 0) % HOUR,
    });
    expect(next).toBeGreaterThanOrEqual(now);
    const all = { pattern: '0 0 * * *', tz: 'UTC', limit: 9, startDate: new Date(FAR), endDate: FAR + 20 * DAY };
    await queue.upsertJobScheduler('full', all, { name: 'report', data: { a: 1 }, opts: { attempts: 3, priority: 5 } });
    const full = {
      key: 'full',
      name: 'report',
      next: FAR + DAY,
      iterationCount: 1,
      pattern: '0 0 * * *',
      tz: 'UTC',
      limit: 9,
      startDate: FAR,
      endDate: FAR + 20 * DAY,
      template: { data: { a: 1 }, opts: { attempts: 3, priority: 5 } },
    };
    expect(await queue.getJobScheduler('full')).toEqual(full);
    await queue.upsertJobScheduler('offset', { every: DAY, offset: 5 * HOUR, startDate: FAR });
    expect(await queue.getJobScheduler('offset')).toMatchObject({ next: FAR + 5 * HOUR, offset: 5 * HOUR });
    expect(await queue.getJobScheduler('none')).toBeUndefined();
    expect((await queue.getJobSchedulers()).map(({ key }) => key)).toEqual(['full', 'offset', 'plain']);
    expect((await queue.getJobSchedulers(0, 1, true)).map(({ key }) => key)).toEqual(['plain', 'offset']);
    expect((await queue.getJobSchedulers(1, -1)).map(({ key }) => key)).toEqual(['offset', 'plain']);
    for (const [start, end] of [
      [5, 9],
      [1, 0],
      [0, -9],
    ] as const)
      expect(await queue.getJobSchedulers(start, end)).toEqual([]);
    expect(await queue.getJobSchedulers(0, Number.MAX_SAFE_INTEGER)).toHaveLength(3);
    expect(await queue.getJobSchedulers(Number.MAX_SAFE_INTEGER, -1)).toEqual([]);
    expect((await queue.getJobSchedulers(-2, -1)).map(({ key }) => key)).toEqual(['offset', 'plain']);
    expect((await queue.getJobSchedulers(-9, -3)).map(({ key }) => key)).toEqual(['full']);
    expect(await queue.getJobSchedulersCount()).toBe(3);
    const job = (await queue.getDelayed()).find(({ repeatJobKey }) => repeatJobKey === 'full');
    expect(job).toMatchObject({ id: `repeat:full:${FAR + DAY}`, name: 'report', data: { a: 1 } });
    expect(job?.opts).toMatchObject({
      attempts: 3,
      priority: 5,
      prevMillis: FAR + DAY,
      repeat: { count: 1, offset: 0, tz: 'UTC' },
    });
    await expect(job?.remove()).rejects.toThrow('belongs to a job scheduler and cannot be removed directly');
    await queue.drain(true);
    expect(await queue.clean(0, 0, 'delayed')).toEqual([]);
    expect(await idsOf(queue)).toHaveLength(3);
    expect([await queue.removeJobScheduler('full'), await queue.removeJobScheduler('full')]).toEqual([true, false]);
    expect(await queue.getJob(`repeat:full:${FAR + DAY}`)).toBeUndefined();
  });

  test('S5-4 limit, endDate and immediately end and begin a schedule, and an upsert replaces its next job', async () => {
    const scene = await newScene(engine);
    const { queue, store } = scene;
    const ran: string[] = [];
    work(scene, ({ id, repeatJobKey }) => void ran.push(`${repeatJobKey} ${slotOf(id)}`));
    const now = await clockOf(store);
    await queue.upsertJobScheduler('three', { every: 100, limit: 3, catchUp: 'all' });
    const endDate = now + paced(2000);
    await queue.upsertJobScheduler('until', { every: 200, endDate, catchUp: 'all' });
    await queue.upsertJobScheduler('now', { pattern: '0 0 1 1 *', tz: 'UTC', immediately: true });
    const runsOf = (id: string): number[] =>
      ran.filter((run) => run.startsWith(`${id} `)).map((run) => Number(run.split(' ')[1]));
    await until('the runs', () => runsOf('three').length === 3 && runsOf('now').length === 1);
    const [year] = await queue.nextTimes('now', 1);
    expect(new Date(year ?? 0).toISOString()).toMatch(/-01-01T00:00:00.000Z$/);
    await until('the end', async () => (await queue.nextTimes('until', 1)).length === 0);
    const slots = runsOf('until');
    await until('the last run', () => runsOf('until').length === 1 + Math.floor((endDate - (slots[0] ?? 0)) / 200));
    expect(Math.max(...runsOf('until'))).toBeLessThanOrEqual(endDate);
    expect(await queue.getJobScheduler('three')).toMatchObject({ iterationCount: 3, limit: 3 });
    expect(runsOf('three')).toHaveLength(3);
    // Delayed jobs alone are left: the upsert replaces one of them, and the count of the schedule goes on.
    const [before] = await idsOf(queue);
    expect(before).toBe(`repeat:now:${year}`);
    await queue.upsertJobScheduler('now', { every: HOUR, startDate: FAR }, { data: { changed: true } });
    expect(await idsOf(queue)).toEqual([`repeat:now:${FAR}`]);
    expect(await queue.getJobScheduler('now')).toMatchObject({ iterationCount: 2, every: HOUR, next: FAR });
    await expect(queue.upsertJobScheduler('x', { every: 5, endDate: now - 1 })).rejects.toThrow(
      'End date must be greater than current timestamp',
    );
    await expect(queue.upsertJobScheduler('x', { every: 5, pattern: '* * * * *' })).rejects.toThrow('Both .pattern and .every');
    await expect(queue.upsertJobScheduler('x', {})).rejects.toThrow('Either .pattern or .every');
  });

  test('S5-4 the older repeat option makes the same schedules, with its own getters', async () => {
    const { queue } = await newScene(engine);
    const repeat = { pattern: '0 0 * * *', tz: 'UTC', startDate: FAR };
    const job = await queue.add('mail', { to: 'ada' }, { repeat, attempts: 2 });
    expect([job.repeatJobKey, job.id]).toEqual(['mail:::UTC:0 0 * * *', `repeat:mail:::UTC:0 0 * * *:${FAR + DAY}`]);
    await queue.addBulk([{ name: 'mail', data: { to: 'eve' }, opts: { repeat } }]);
    expect(await queue.getRepeatableJobs()).toEqual([
      {
        key: 'mail:::UTC:0 0 * * *',
        name: 'mail',
        id: null,
        endDate: null,
        tz: 'UTC',
        pattern: '0 0 * * *',
        every: null,
        next: FAR + DAY,
      },
    ]);
    expect((await queue.getDelayed()).map(({ data }) => data as unknown)).toEqual([{ to: 'eve' }]);
    expect([await queue.removeRepeatable('mail', repeat), await queue.removeRepeatable('mail', repeat)]).toEqual([true, false]);
    expect(await queue.count()).toBe(0);
  });

  test('S5-5 a paused schedule makes no job, goes on after resume, and can be triggered', async () => {
    const scene = await newScene(engine);
    const { queue } = scene;
    await queue.upsertJobScheduler('s', { every: HOUR, startDate: FAR }, { name: 'n', data: { a: 1 }, opts: { attempts: 2 } });
    expect([await queue.pauseJobScheduler('s'), await queue.pauseJobScheduler('none')]).toEqual([true, false]);
    expect([await idsOf(queue), (await queue.getJobScheduler('s'))?.paused]).toEqual([[], true]);
    const triggered = await queue.triggerJobScheduler('s');
    expect([triggered.name, triggered.data, triggered.opts.attempts]).toEqual(['n', { a: 1 }, 2]);
    const ran: string[] = [];
    work(scene, ({ id }) => void ran.push(id));
    await until('the run', () => ran.length === 1);
    expect(ran).toEqual([triggered.id]);
    expect(await queue.getJobScheduler('s')).toMatchObject({ iterationCount: 0, paused: true });
    expect((await queue.resumeJobScheduler('s'))?.id).toBe(`repeat:s:${FAR}`);
    expect(await idsOf(queue)).toEqual([`repeat:s:${FAR}`]);
    expect(await queue.getJobScheduler('s')).not.toHaveProperty('paused');
    const missing = { code: 'JOB_MISSING' };
    await expect(queue.resumeJobScheduler('none')).rejects.toMatchObject(missing);
    await expect(queue.triggerJobScheduler('none')).rejects.toMatchObject(missing);
    await expect(queue.nextTimes('none')).rejects.toMatchObject(missing);
  });

  test('S5-5 after ten missed slots, catchUp makes no run, one run or a run for each slot', async () => {
    const scene = await newScene(engine);
    const { queue, store } = scene;
    const every = paced(300);
    for (const catchUp of ['none', 'one', 'all'] as const) await queue.upsertJobScheduler(catchUp, { every, catchUp });
    const firsts = Object.fromEntries((await queue.getJobSchedulers()).map(({ key, next }) => [key, next]));
    await until('ten slots to pass', async () => (await clockOf(store)) > Math.max(...Object.values(firsts)) + 10 * every);
    const began = await clockOf(store);
    const ran: { key: string; slot: number }[] = [];
    work(scene, ({ id, repeatJobKey }) => void ran.push({ key: repeatJobKey ?? '', slot: slotOf(id) }));
    const missed = (key: string): number[] => ran.filter((run) => run.key === key && run.slot <= began).map(({ slot }) => slot);
    const onTime = (key: string): boolean => ran.some((run) => run.key === key && run.slot > began);
    await until('each to be on time again', () => ['none', 'one', 'all'].every(onTime));
    expect(missed('one')).toEqual([firsts['one']]);
    // The last slot before the worker began may be less than an interval old, so it is late and not missed.
    expect(missed('none').filter((slot) => slot <= began - every)).toEqual([]);
    const all = missed('all');
    expect(all.length).toBeGreaterThanOrEqual(11);
    expect(all).toEqual(all.map((_, n) => (firsts['all'] ?? 0) + n * every));
  });

  test("S5-5 with overlap 'skip' two runs never overlap, and with 'queue' they do", async () => {
    const scene = await newScene(engine);
    const { queue } = scene;
    const gates = { skip: newGate(), queue: newGate() };
    const active = { skip: 0, queue: 0 };
    const most = { skip: 0, queue: 0 };
    const runs = { skip: 0, queue: 0 };
    work(
      scene,
      async ({ repeatJobKey }) => {
        const key = repeatJobKey as 'skip' | 'queue';
        active[key] += 1;
        runs[key] += 1;
        most[key] = Math.max(most[key], active[key]);
        await gates[key].opened;
        active[key] -= 1;
      },
      { concurrency: 10 },
    );
    for (const overlap of ['skip', 'queue'] as const) await queue.upsertJobScheduler(overlap, { every: 100, overlap });
    // The negative control: without the option, slots that come while the first job runs get jobs that run beside it.
    await until('overlapping runs', () => most.queue >= 4);
    await queue.removeJobScheduler('queue');
    expect([runs.skip, most.skip]).toEqual([1, 1]);
    gates.queue.open();
    gates.skip.open();
    await until('further runs', () => runs.skip >= 4);
    expect(most.skip).toBe(1);
  });

  test('S5-8 the next times are listed without making them', async () => {
    const { queue } = await newScene(engine);
    await queue.upsertJobScheduler('s', { every: HOUR, startDate: FAR, limit: 3 });
    expect(await queue.nextTimes('s', 5)).toEqual([FAR, FAR + HOUR, FAR + 2 * HOUR]);
    expect(await queue.nextTimes('s', 1)).toEqual([FAR]);
    await queue.upsertJobScheduler('p', { pattern: '0 12 * * 1', tz: 'UTC', startDate: FAR });
    expect(await queue.nextTimes('p', 2)).toEqual([Date.UTC(2090, 0, 2, 12), Date.UTC(2090, 0, 9, 12)]);
    expect(await queue.nextTimes('p')).toHaveLength(10);
    expect(await queue.getJobSchedulersCount()).toBe(2);
    expect(await queue.count()).toBe(2);
    for (const count of [0, -1, 1.5, 1001, Number.NaN])
      await expect(queue.nextTimes('s', count)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'count' });
  });
});
