// S5-6: a process whose wall clock is wrong moves no slot. S5-7: on `memory:`, the faked clock of a test moves schedules, delays and retention.
import { randomUUID } from 'node:crypto';
import { Queue, Worker } from 'holdfast';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { newScene, SERVER_ENGINES } from '../support/scenes/scene.js';
import { wallClockShiftedBy } from '../support/servers/wall-clock.js';
import { TickClock } from '../support/wait/tick-clock.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const SKEW_MS = 5 * 60_000;
const DAY = 86_400_000;
/** Enough for a busy machine, and far less than the skew. */
const LATE_MS = paced(3000);

// A file has one host, so the clock of the host is the clock of the store: there is no other clock that could be wrong.
describe.each(SERVER_ENGINES)('S5 wrong clocks on %s', (engine) => {
  test('S5-6 a worker and a producer whose clocks are five minutes wrong move no slot', { timeout: paced(40_000) }, async () => {
    const { queue, url: connection } = await newScene(engine);
    const every = 500;
    const ahead = await wallClockShiftedBy(SKEW_MS);
    const behind = await wallClockShiftedBy(-SKEW_MS);
    // The store's server shares the clock of this process.
    const began = Date.now();
    await queue.upsertJobScheduler('s', { every }, { name: 'echo', data: {} });
    const plan = { queue: 'work', connection, options: { name: 'w' } };
    const workers = [new WorkerProcess(plan, 'worker.mjs', ahead), new WorkerProcess(plan, 'worker.mjs', behind)];
    const [first, second] = await Promise.all(workers.map((worker) => worker.moment('clock')));
    expect((first?.['wall'] as number) - Date.now()).toBeGreaterThan(SKEW_MS - 20_000);
    expect((second?.['wall'] as number) - Date.now()).toBeLessThan(-SKEW_MS + 20_000);
    const producer = new WorkerProcess({ queue: 'work', connection }, 'upserter.mjs', behind);
    await producer.moment('ready');
    producer.send(JSON.stringify({ kind: 'every', ids: ['late'] }));
    const [made = ''] = (await producer.moment('made'))['ids'] as string[];
    expect(Math.abs(Number(made.split(':').at(-1)) - Date.now())).toBeLessThan(LATE_MS);
    await queue.removeJobScheduler('late');
    const slots = (): number[] =>
      workers
        .flatMap((worker) => worker.all('started', ({ jobId }) => (jobId as string).startsWith('repeat:s:')))
        .map(({ jobId }) => Number((jobId as string).split(':').at(-1)))
        .toSorted((a, b) => a - b);
    await until('both to have worked', () => slots().length >= 8 && workers.every((worker) => worker.all('started').length >= 2));
    const seen = slots();
    const now = Date.now();
    expect(seen[0]).toBeGreaterThanOrEqual(began - 1);
    expect(seen.at(-1)).toBeLessThanOrEqual(now + 1);
    for (const [index, slot] of seen.entries()) {
      expect((slot - (seen[0] ?? 0)) % every).toBe(0);
      expect(slot - (seen[index - 1] ?? slot)).toBeLessThan(LATE_MS);
    }
    const next = (await queue.getJobScheduler('s'))?.next ?? 0;
    expect(Math.abs(next - now)).toBeLessThan(LATE_MS);
  });
});

interface FakeClock {
  install(now: number): void;
  tick(ms: number): unknown;
  uninstall(): void;
}

const vitest: FakeClock = {
  install: (now) => void vi.useFakeTimers({ now }),
  tick: (ms) => vi.advanceTimersByTime(ms),
  uninstall: () => void vi.useRealTimers(),
};
const CLOCKS: [string, FakeClock][] = [
  ['the fake timers of vitest', vitest],
  ["a clock in sinon's way", new TickClock()],
];

describe.each(CLOCKS)('S5 faked time with %s', (_, clock) => {
  const START = Date.UTC(2030, 2, 20, 12);
  afterEach(() => clock.uninstall());

  function open(handler: (id: string) => void): Queue {
    const connection = `memory:${randomUUID()}`;
    const queue = new Queue('work', { connection });
    const worker = new Worker('work', ({ id }) => handler(id), { connection });
    onTestFinished(async () => {
      await worker.close();
      await queue.close();
    });
    return queue;
  }

  test('S5-7 thirty fake days run a schedule thirty times, over a change of the clock', async () => {
    clock.install(START);
    const ran: string[] = [];
    const queue = open((id) => void ran.push(id));
    await queue.upsertJobScheduler('night', { pattern: '30 2 * * *', tz: 'Europe/Berlin' });
    for (let day = 1; day <= 30; day += 1) {
      clock.tick(DAY);
      await until(`the run of day ${day}`, () => ran.length === day);
    }
    const inBerlin = new Intl.DateTimeFormat('sv', { timeZone: 'Europe/Berlin', timeStyle: 'short' });
    const times = ran.map((id) => inBerlin.format(Number(id.split(':').at(-1))));
    expect(times.filter((time) => time !== '02:30')).toEqual(['03:00']);
    expect(new Set(ran).size).toBe(30);
  });

  test('S5-7 a fake hour makes a delayed job due, and a fake day removes a finished one by its age', async () => {
    clock.install(START);
    const ran: string[] = [];
    const queue = open((id) => void ran.push(id));
    const old = await queue.add('old', {}, { removeOnComplete: { age: 3600 } });
    await queue.add('later', {}, { delay: 3_600_000, jobId: 'later', removeOnComplete: { age: 3600 } });
    await until('the first run', () => ran.length === 1);
    await until('its end', async () => (await old.getState()) === 'completed');
    clock.tick(3_599_000);
    expect((await queue.getJob('later'))?.delay).toBe(3_600_000);
    expect([ran, await queue.getJobState('later')]).toEqual([[old.id], 'delayed']);
    clock.tick(1_000);
    await until('the delayed run', () => ran.includes('later'));
    await until('its end', async () => (await queue.getJobState('later')) === 'completed');
    clock.tick(DAY);
    await queue.add('last', {}, { jobId: 'last', removeOnComplete: { age: 3600 } });
    await until('the last run', async () => (await queue.getJobState('last')) === 'completed');
    await until('the old jobs to be gone', async () => (await queue.getCompletedCount()) === 1);
  });
});
