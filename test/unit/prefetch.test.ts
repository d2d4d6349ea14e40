import { describe, expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { Pace } from '../../src/worker/pace.js';
import { Slots } from '../../src/worker/slots.js';
import type { WorkerOptions } from '../../src/worker/options.js';
import type { Worker } from '../../src/worker/worker.js';
import { type Scene, scene } from '../support/scenes/faulty-scene.js';
import { sleep, until } from '../support/wait/until.js';
import { newGate } from '../support/wait/gate.js';

const JOBS = 100;

async function addAll({ inner, queue }: Scene, count: number, name = 'job'): Promise<string[]> {
  const job = { name, data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
  const replies = await inner.add(
    queue,
    Array.from({ length: count }, () => job),
    { caller: `${name}-${Math.random()}`, seq: 1 },
  );
  return replies.map(({ id }) => id);
}

/** So much claimed ahead is enough to see what becomes of it. */
const ENOUGH = 5;

/**
 * A worker that gets stuck as soon as it has claimed enough ahead: the jobs that begin then last. When they have taken all slots, and before
 * anything else can happen, `then` is called. Answers the jobs behind them, in their order.
 */
async function stuck(part: Scene, options: WorkerOptions, then: (worker: Worker) => unknown): Promise<string[]> {
  const { concurrency = 1 } = options;
  const ids = await addAll(part, 300);
  const finish = newGate();
  const done = newGate();
  onTestFinished(() => finish.open());
  const longs: string[] = [];
  const { worker } = part.worker(
    async ({ id }) => {
      if (longs.length === 0 && worker.prefetched < ENOUGH + concurrency) return;
      longs.push(id);
      if (longs.length === concurrency) Promise.resolve(then(worker)).then(() => done.open(), done.fail);
      await finish.opened;
    },
    { autorun: false, ...options },
  );
  void worker.run();
  await done.opened;
  return ids.slice(ids.indexOf(longs.at(-1) ?? '') + 1);
}

/** Begins to close the worker, and waits for the moment when it takes no more jobs. */
async function begunClosing(worker: Worker): Promise<void> {
  const closing = new Promise<unknown>((resolve) => worker.once('closing', resolve));
  void worker.close();
  await closing;
}

describe('the option prefetch', () => {
  test.each([-1, 1.5, '10', Number.NaN, 100_001])('%s is refused', async (prefetch) => {
    const part = await scene('memory');
    const make = (): unknown => part.worker(() => undefined, { autorun: false, prefetch: prefetch as number });
    expect(make).toThrow(/prefetch must be a whole number from 0/);
    const { worker } = part.worker(() => undefined, { autorun: false });
    expect(worker.opts.prefetch).toBe(0);
    expect(() => {
      worker.prefetch = prefetch as number;
    }).toThrow(/prefetch must be/);
  });
});

describe('how much is claimed ahead', () => {
  test('is what the slots finish in 5 ms at the pace of the last 20', () => {
    const clock = new ManualClock();
    const pace = new Pace(clock);
    expect(pace.expected()).toBe(0);
    pace.ended();
    expect(pace.expected()).toBe(5);
    for (let ended = 1; ended < 40; ended += 1) pace.ended();
    clock.advance(20);
    expect(pace.expected()).toBe(10);
    clock.advance(10);
    expect(pace.expected()).toBe(10);
    clock.advance(10_000);
    expect(pace.expected()).toBe(0);
  });

  test('is what the slots finish in four round trips, if these take longer, and in 100 ms at most', () => {
    const clock = new ManualClock();
    const pace = new Pace(clock);
    const expected = (): number => {
      for (let ended = 0; ended < 20; ended += 1) pace.ended();
      clock.advance(20);
      return pace.expected();
    };
    pace.answered(10);
    expect(expected()).toBe(40);
    // A handler has kept the loop from reading the reply.
    pace.answered(5000);
    expect(expected()).toBe(44);
    pace.answered(1);
    expect(expected()).toBe(5);
    for (let call = 0; call < 100; call += 1) pace.answered(1000);
    expect(expected()).toBe(100);
  });

  test('is nothing after jobs that were claimed ahead could not start, until handlers end again', () => {
    const clock = new ManualClock();
    const pace = new Pace(clock);
    for (let ended = 0; ended < 40; ended += 1) pace.ended();
    clock.advance(20);
    expect(pace.expected()).toBe(10);
    pace.broken();
    expect(pace.expected()).toBe(0);
    pace.ended();
    expect(pace.expected()).toBe(5);
  });

  test('is nothing behind handlers that take longer than that', () => {
    const clock = new ManualClock();
    const slots = new Slots(1, 100, clock);
    for (let run = 0; run < 5; run += 1) {
      clock.advance(10);
      slots.inHand = 1;
      slots.pace.ended();
      expect(slots.roomAfter(1)).toBe(1);
    }
  });

  test('is never more than slots and prefetch together, and nothing while more jobs run than there are slots', () => {
    const slots = new Slots(2, 10, new ManualClock());
    for (let ended = 0; ended < 50; ended += 1) slots.pace.ended();
    expect(slots.roomAfter(0)).toBe(12);
    slots.inHand = 12;
    expect(slots.roomAfter(0)).toBe(0);
    expect(slots.roomAfter(3)).toBe(3);
    slots.running = 3;
    expect(slots.roomAfter(3)).toBe(0);
  });
});

describe('jobs whose slots are free', () => {
  test.each([0, 20])('stay here behind handlers that compute, with a prefetch of %i', async (prefetch) => {
    const part = await scene('memory');
    const ids = await addAll(part, 6);
    part.worker(
      () => {
        for (const end = performance.now() + 10; performance.now() < end; );
      },
      { prefetch, concurrency: 6 },
    );
    for (const id of ids) await part.reaches(id, 'completed');
    const { events } = await part.inner.events(part.queue, 0, 1000);
    expect(events.filter(({ name }) => name === 'active').map(({ jobId }) => jobId)).toEqual(ids);
  });
});

describe('a worker with prefetch', () => {
  test('needs a fraction of the calls for one slot', async () => {
    const calls = async (prefetch: number): Promise<number> => {
      const part = await scene('memory');
      const ids = await addAll(part, JOBS);
      part.worker(() => undefined, { prefetch });
      await part.reaches(ids.at(-1) ?? '', 'completed');
      return part.store.calls('settle');
    };
    expect(await calls(0)).toBe(JOBS);
    expect(await calls(50)).toBeLessThan(JOBS / 3);
  });

  test.each([0, 5])(
    'of %i runs on while an outcome is in flight, by no more than that, and one handler at a time',
    async (prefetch) => {
      const part = await scene('memory');
      await addAll(part, JOBS);
      const completed: string[] = [];
      let running = 0;
      let begun = 0;
      const { worker } = part.worker(
        async () => {
          begun += 1;
          running += 1;
          expect(running).toBe(1);
          await sleep(0);
          running -= 1;
        },
        { prefetch, autorun: false },
      );
      worker.on('completed', ({ id }) => completed.push(id));
      void worker.run();
      await until('some have completed', () => completed.length >= 30);
      const held = part.store.on('settle', { fault: 'hold-reply', times: 1 });
      await until('an outcome is on its way', () => held.holding > 0);
      const known = completed.length;
      await until('all that is in hand has run', () => worker.health().running === 0 && worker.prefetched === 0);
      expect(completed).toHaveLength(known);
      expect(begun - known).toBeLessThanOrEqual(1 + prefetch);
      if (prefetch > 0) expect(begun - known).toBeGreaterThan(1);
      held.release();
      await until('all have completed', () => completed.length === JOBS);
    },
  );

  test.each<[string, (worker: Worker) => unknown, number]>([
    ['less concurrency', (worker) => void (worker.concurrency = 1), 0],
    ['less prefetch', (worker) => void (worker.prefetch = 1), 1],
    ['a rate limit', (worker) => worker.rateLimit(60_000), 0],
    ['pause()', (worker) => worker.pause(true), 0],
    ['close()', (worker) => begunClosing(worker), 0],
  ])('%s gives back what is too much, in its old order', async (_, change, left) => {
    const part = await scene('memory');
    const ahead = { before: 0, after: 0 };
    const rest = await stuck(part, { prefetch: 20, concurrency: 2 }, async (worker) => {
      ahead.before = worker.prefetched;
      await change(worker);
      ahead.after = worker.prefetched;
    });
    expect(ahead.before).toBeGreaterThan(left);
    expect(ahead.after).toBe(left);
    const waiting = await until('they wait again', async () => {
      const { jobs: found } = await part.inner.jobs(part.queue, { lists: ['waiting'], start: 0, end: -1, asc: true });
      return found.length >= rest.length - left ? found : undefined;
    });
    expect(waiting.map(({ id }) => id)).toEqual(rest.slice(-waiting.length));
    for (const job of waiting) expect(job).toMatchObject({ attemptsMade: 0, attemptsStarted: 0, stalledCounter: 0 });
  });

  test('hands prefetched jobs back behind a long handler, and prefetches no more', async () => {
    const part = await scene('memory');
    const rest = await stuck(part, { prefetch: 20 }, (worker) => expect(worker.prefetched).toBeGreaterThan(0));
    const waitsAgain = async (): Promise<boolean> => (await part.inner.status(part.queue)).counts.waiting === rest.length;
    await until('they wait again', waitsAgain);
    const { events } = await part.inner.events(part.queue, 0, 1000);
    expect(events.filter(({ name, jobId }) => name === 'active' && jobId === rest[0])).toHaveLength(1);
    const calls = part.store.calls('claim') + part.store.calls('settle');
    // Wake-ups ask for free slots alone.
    await part.add();
    await sleep(300);
    expect((await part.inner.status(part.queue)).counts.active).toBe(1);
    expect(part.store.calls('claim') + part.store.calls('settle')).toBe(calls);
  });

  test('does not start prefetched jobs whose locks ended behind a blocking handler, and emits nothing', async () => {
    const part = await scene('memory');
    const starts: boolean[] = [];
    let blocked = false;
    const ids = await addAll(part, JOBS);
    const { worker, errors } = part.worker(
      ({ lock }) => {
        starts.push(lock.held);
        if (blocked || worker.prefetched < ENOUGH) return;
        blocked = true;
        for (const end = performance.now() + 400; performance.now() < end; );
      },
      { prefetch: 20, lockDuration: 200, skipStalledCheck: true, autorun: false },
    );
    void worker.run();
    await part.reaches(ids.at(-1) ?? '', 'completed');
    expect(blocked).toBe(true);
    expect(starts).toHaveLength(JOBS);
    expect(starts).not.toContain(false);
    expect(errors).toEqual([]);
  });

  test('hands prefetched jobs back when the queue is paused', async () => {
    const part = await scene('memory');
    await addAll(part, JOBS);
    let begun = 0;
    let pausedAt = 0;
    const { worker } = part.worker(
      async () => {
        begun += 1;
        if (pausedAt === 0 && worker.prefetched >= 2 * ENOUGH) {
          pausedAt = begun;
          await part.inner.configure(part.queue, { paused: true });
        }
        await (pausedAt === 0 ? new Promise((resolve) => setImmediate(resolve)) : sleep(5));
      },
      { prefetch: 20 },
    );
    await until('nothing is active', async () => pausedAt > 0 && (await part.inner.status(part.queue)).counts.active === 0);
    expect(begun - pausedAt).toBeLessThan(ENOUGH);
  });

  test('cannot cancel a prefetched job that has not started', async () => {
    const part = await scene('memory');
    await stuck(part, { prefetch: 20 }, async (worker) => {
      const { jobs: active } = await part.inner.jobs(part.queue, { lists: ['active'], start: 0, end: -1, asc: true });
      const [runs, waits] = active.slice(-worker.prefetched - 1).map(({ id }) => id);
      expect(worker.cancelJob(waits ?? '')).toBe(false);
      expect(worker.cancelJob(runs ?? '')).toBe(true);
    });
  });

  test('lets the event loop turn when handlers never wait', async () => {
    const part = await scene('memory');
    const ids = await addAll(part, 400);
    let begun = 0;
    let most = 0;
    let last = 0;
    const look = setInterval(() => {
      most = Math.max(most, begun - last);
      last = begun;
    }, 1);
    onTestFinished(() => clearInterval(look));
    part.worker(
      () => {
        begun += 1;
        for (const end = performance.now() + 0.5; performance.now() < end; );
      },
      { prefetch: 400 },
    );
    await part.reaches(ids.at(-1) ?? '', 'completed');
    expect(most).toBeLessThan(50);
  });
});
