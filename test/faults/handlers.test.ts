// Handlers that do odd things, and handlers that move their job themselves. A worker survives all of them.
import { describe, expect, test } from 'vitest';
import { DelayedError, RateLimitError, UnrecoverableError, WaitingError } from '../../src/job/signals.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, messagesOf, next, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';

class Unreadable extends Error {
  override get message(): string {
    throw new Error('not even my message can be read');
  }
}

const THROWN: [what: string, thrown: unknown, reason: string | RegExp][] = [
  ['a string', 'just text', 'just text'],
  ['undefined', undefined, /undefined/],
  ['null', null, /null/],
  ['a number', 42, /42/],
  ['a symbol', Symbol('s'), /Symbol\(s\)/],
  ['an object with a message', { message: 'from afar', code: 7 }, 'from afar'],
  ['an object that cannot be printed', Object.create(null), /cannot be printed/],
  ['an error without a message', new Error(), 'Error'],
  ['an error that cannot be read', new Unreadable(), /cannot be read/],
  ['an error with a NUL in its message', new Error('a\0b'), 'a\ufffdb'],
];

const UNKEEPABLE: [what: string, result: unknown][] = [
  ['a function', () => undefined],
  ['a BigInt', 10n],
  [
    'a cycle',
    (() => {
      const cycle: Record<string, unknown> = {};
      cycle['self'] = cycle;
      return cycle;
    })(),
  ],
  [
    'something whose toJSON throws',
    {
      toJSON: () => {
        throw new Error('no');
      },
    },
  ],
];

describe.each(ENGINES)('odd handlers on %s', (engine) => {
  test('get no other job when they complete their job themselves', async () => {
    const { add, reaches, worker } = await scene(engine);
    const [first, second] = [await add(), await add()];
    const runs: string[] = [];
    worker(async (job, token) => {
      runs.push(job.id);
      expect(await job.moveToCompleted('by itself', token)).toEqual([]);
    });
    expect(await reaches(first, 'completed')).toMatchObject({ returnvalue: '"by itself"' });
    // Fetched along with the first one's end, it would be locked by hand and run by nobody.
    expect(await reaches(second, 'completed')).toMatchObject({ stalledCounter: 0 });
    expect(runs).toEqual([first, second]);
  });

  test('fail their job with a reason, whatever they throw, and the next job runs', async () => {
    const { add, reaches, worker } = await scene(engine);
    const ids: string[] = [];
    for (const _ of THROWN) ids.push(await add());
    const { worker: watched, errors } = worker((job) => {
      throw THROWN[ids.indexOf(job.id)]?.[1];
    });
    const told: unknown[] = [];
    watched.on('failed', (job, error) => told.push([job?.id, error instanceof Error]));
    for (const [index, [what, , reason]] of THROWN.entries()) {
      const record = await reaches(ids[index] ?? '', 'failed');
      if (typeof reason === 'string') expect(record.failedReason, what).toBe(reason);
      else expect(record.failedReason, what).toMatch(reason);
    }
    await until('all failures to be told', () => told.length === THROWN.length);
    expect(told).toEqual(ids.map((id) => [id, true]));
    expect(errors).toEqual([]);
  });

  test('fail their job for good with a result that cannot be kept, so the work is not repeated', async () => {
    const { add, reaches, worker } = await scene(engine);
    const ids: string[] = [];
    for (const _ of UNKEEPABLE) ids.push(await add({ attempts: 3 }));
    let runs = 0;
    worker((job) => {
      runs += 1;
      return UNKEEPABLE[ids.indexOf(job.id)]?.[1];
    });
    for (const id of ids) expect((await reaches(id, 'failed')).failedReason).toContain('Result of job');
    expect(runs).toBe(UNKEEPABLE.length);
  });

  test('do not run for a job whose stored options are broken, which fails with a reason', async () => {
    const { add, reaches, worker, inner, queue } = await scene(engine);
    const broken = { name: 'job', data: '{}', opts: '{not json', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
    const [reply] = await inner.add(queue, [broken], { caller: 'a foreign writer', seq: 1 });
    const sound = await add();
    worker(() => 'done');
    expect((await reaches(reply?.id ?? '', 'failed')).failedReason).toContain('not JSON');
    await reaches(sound, 'completed');
  });

  test('go on when listeners throw, which emits error', async () => {
    const { add, reaches, worker } = await scene(engine);
    const ids = [await add(), await add()];
    const { worker: watched, errors } = worker(() => 'done');
    for (const event of ['active', 'completed', 'drained'] as const) {
      watched.on(event, () => {
        throw new Error(`a listener of ${event} broke`);
      });
    }
    for (const id of ids) await reaches(id, 'completed');
    await until('all to be told', () => errors.length === 5);
    expect(messagesOf(errors, 'a listener of active broke')).toHaveLength(2);
    expect(messagesOf(errors, 'a listener of completed broke')).toHaveLength(2);
  });

  test('fail at once with UnrecoverableError, whatever attempts are left', async () => {
    const { add, reaches, worker } = await scene(engine);
    const id = await add({ attempts: 5 });
    worker(() => {
      throw new UnrecoverableError('no use');
    });
    expect(await reaches(id, 'failed')).toMatchObject({ attemptsMade: 1, failedReason: 'no use' });
  });

  test('run again when due after moveToDelayed and DelayedError, without an attempt or a failed event', async () => {
    const { add, reaches, worker, record } = await scene(engine);
    const id = await add({ attempts: 1 });
    let heldAfterMove: boolean | undefined;
    const { worker: watched, errors } = worker(async (job, token) => {
      if (job.attemptsStarted === 2) return 'second time';
      await job.moveToDelayed(Date.now() + 200, token);
      heldAfterMove = job.lock.held;
      throw new DelayedError();
    });
    let failures = 0;
    watched.on('failed', () => (failures += 1));
    await reaches(id, 'delayed');
    expect((await record(id))?.delay).toBeGreaterThan(0);
    expect(await reaches(id, 'completed')).toMatchObject({ attemptsMade: 1, attemptsStarted: 2, returnvalue: '"second time"' });
    expect(heldAfterMove).toBe(false);
    expect(failures).toBe(0);
    expect(errors).toEqual([]);
  });

  test('run again after moveToWait and WaitingError, without an attempt', async () => {
    const { add, reaches, worker } = await scene(engine);
    const id = await add({ attempts: 1 });
    const { errors } = worker(async (job, token) => {
      if (job.attemptsStarted === 2) return 'second time';
      await job.moveToWait(token);
      throw new WaitingError();
    });
    expect(await reaches(id, 'completed')).toMatchObject({ attemptsMade: 1, attemptsStarted: 2 });
    expect(errors).toEqual([]);
  });

  test('run first after rateLimit and RateLimitError have blocked the queue, without an attempt', async () => {
    const { add, reaches, worker } = await scene(engine);
    const id = await add({ attempts: 1 });
    const other = await add();
    const starts: [string, number][] = [];
    const { worker: watched, errors } = worker(async (job) => {
      starts.push([job.id, performance.now()]);
      if (starts.length > 1) return 'done';
      await watched.rateLimit(300);
      throw Worker.RateLimitError();
    });
    expect(await reaches(id, 'completed')).toMatchObject({ attemptsMade: 1, attemptsStarted: 2, stalledCounter: 0 });
    await reaches(other, 'completed');
    expect(starts.map(([jobId]) => jobId)).toEqual([id, id, other]);
    expect((starts[1]?.[1] ?? 0) - (starts[0]?.[1] ?? 0)).toBeGreaterThanOrEqual(295);
    expect(errors).toEqual([]);
  });

  test('fail when they throw DelayedError or WaitingError without the move, but not RateLimitError', async () => {
    const { add, reaches, worker } = await scene(engine);
    const delayed = await add();
    const waiting = await add();
    const limited = await add();
    let limits = 0;
    worker((job) => {
      if (job.id === delayed) throw new DelayedError();
      if (job.id === waiting) throw new WaitingError();
      limits += 1;
      if (limits < 3) throw new RateLimitError();
      return 'at last';
    });
    expect(await reaches(delayed, 'failed')).toMatchObject({ attemptsMade: 1 });
    expect(await reaches(waiting, 'failed')).toMatchObject({ attemptsMade: 1 });
    expect(await reaches(limited, 'completed')).toMatchObject({ attemptsMade: 1, attemptsStarted: 3 });
  });

  test('change nothing by what they return or throw after they finished their job themselves', async () => {
    const { add, reaches, worker } = await scene(engine);
    const returns = await add();
    const throws = await add();
    const { worker: watched, errors } = worker(async (job, token) => {
      await job.moveToCompleted('by myself', token, false);
      if (job.id === throws) throw new Error('after the end');
      return 'ignored';
    });
    for (const id of [returns, throws])
      expect(await reaches(id, 'completed')).toMatchObject({ returnvalue: '"by myself"', attemptsMade: 1 });
    await watched.close();
    expect(errors.map(({ message }) => message)).toEqual(['after the end']);
  });

  test('make a move once whose reply is lost, and it resolves', async () => {
    const { store, add, reaches, worker } = await scene(engine);
    const id = await add({ attempts: 1 });
    store.on('settle', { fault: 'drop-reply', times: 1 });
    worker(async (job, token) => {
      if (job.attemptsStarted === 2) return 'second time';
      await job.moveToWait(token);
      throw new WaitingError();
    });
    expect(await reaches(id, 'completed')).toMatchObject({ attemptsStarted: 2, attemptsMade: 1 });
  });

  test('keep only their own job and slot when they never settle', async () => {
    const { add, reaches, worker, record, store } = await scene(engine);
    const stuck = await add();
    const others = [await add(), await add(), await add()];
    worker((job) => (job.id === stuck ? new Promise(() => undefined) : 'done'), {
      concurrency: 2,
      lockDuration: paced(200),
      stalledInterval: 50,
    });
    for (const id of others) await reaches(id, 'completed');
    // Twice as often as its lock lasts.
    for (let renewals = 0; renewals < 4; renewals += 1) await store.answered('renew');
    expect(await record(stuck)).toMatchObject({ state: 'active', stalledCounter: 0 });
  });

  test('keep their lock when cancelJob aborts their signal, and their outcome counts', async () => {
    const { add, reaches, worker } = await scene(engine);
    const ids = [await add(), await add()];
    const started = newGate();
    const { worker: watched } = worker(
      (job, _token, signal) =>
        new Promise((resolve, reject) => {
          if (job.id === ids[1]) started.open();
          signal.addEventListener('abort', () =>
            job.lock.held ? reject(new Error(`told: ${String(signal.reason)}`)) : resolve('lost'),
          );
        }),
      { concurrency: 2 },
    );
    await started.opened;
    expect(watched.cancelJob('nobody')).toBe(false);
    expect(watched.cancelJob(ids[0] ?? '', 'enough')).toBe(true);
    expect(await reaches(ids[0] ?? '', 'failed')).toMatchObject({ failedReason: 'told: enough' });
    watched.cancelAllJobs('all of you');
    expect(await reaches(ids[1] ?? '', 'failed')).toMatchObject({ failedReason: 'told: all of you' });
  });

  test('do not run for a job that was started more often than maxStartedAttempts', async () => {
    const { add, reaches, worker } = await scene(engine);
    const id = await add({ attempts: 10 });
    let runs = 0;
    worker(
      async (job, token) => {
        runs += 1;
        await job.moveToWait(token);
        throw new WaitingError();
      },
      { maxStartedAttempts: 3 },
    );
    expect(await reaches(id, 'failed')).toMatchObject({ failedReason: 'job started more than allowable limit' });
    expect(runs).toBe(3);
  });

  test('see drained once when the last waiting job is gone, and again after the next', async () => {
    const { add, reaches, worker } = await scene(engine);
    const ids = [await add(), await add()];
    const { worker: watched } = worker(() => 'done');
    let drained = 0;
    watched.on('drained', () => (drained += 1));
    for (const id of ids) await reaches(id, 'completed');
    await until('drained', () => drained === 1);
    const again = next(watched, 'drained');
    await reaches(await add(), 'completed');
    await again;
    expect(drained).toBe(2);
  });
});
