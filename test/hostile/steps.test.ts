// Odd input for steps, signals, cancels and time limits: a clear error with a code, the worker goes on, and nothing is lost.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';

const ODD_NAMES: [string, unknown][] = [
  ['an empty text', ''],
  ['a text of 257 characters', 'x'.repeat(257)],
  ['a number', 7],
  ['undefined', undefined],
  ['a NUL', 'a\0b'],
  ['half of a surrogate pair', '\ud800'],
  ['an object', {}],
];

describe.each(ENGINES)('on %s', (engine: Engine) => {
  async function start() {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = new Queue(name, { connection });
    onTestFinished(() => queue.close());
    /** Runs the handler on one job, and returns how the job ended. */
    const runs = async (handler: (job: Job) => Promise<unknown>, data: unknown = {}, opts: object = {}): Promise<Job> => {
      const worker = new Worker(name, handler, { connection, drainDelay: 1 });
      worker.on('error', () => undefined);
      const job = await queue.add('odd', data, opts);
      const ended = await until('the job to end', async () => {
        const now = await queue.getJob(job.id);
        return now?.finishedOn === undefined ? undefined : now;
      });
      await worker.close();
      return ended;
    };
    return { connection, name, queue, runs };
  }

  test.each(ODD_NAMES)('a step whose name is %s is refused, and nothing is recorded', async (_what, name) => {
    const { runs } = await start();
    const codes: unknown[] = [];
    const refused = (error: { code: unknown }): void => void codes.push(error.code);
    const job = await runs(async (running) => {
      await running.step(name as string, () => 1).catch(refused);
      await running.sleep(name as string, 1).catch(refused);
      await running.waitFor(name as string).catch(refused);
      return 'went on';
    });
    expect([job.returnvalue, codes]).toEqual(['went on', ['INVALID_STEP', 'INVALID_STEP', 'INVALID_STEP']]);
    expect(await job.steps()).toEqual([]);
  });

  test('names of every other shape keep their steps apart', async () => {
    const { runs } = await start();
    const names = [
      's:a',
      'a',
      ' a',
      'a ',
      'A',
      'ä',
      '😀',
      '__proto__',
      'constructor',
      '{}',
      "'; DROP TABLE jobs; --",
      '%',
      '*',
      'x'.repeat(256),
    ];
    const job = await runs(async (running) => {
      for (const [index, name] of names.entries()) await running.step(name, () => index);
    });
    expect(await job.steps()).toEqual(names.map((name, value) => ({ name, kind: 'step', value })));
  });

  test.each<[string, () => unknown]>([
    ['a function', () => () => 1],
    ['a BigInt', () => 1n],
    ['NaN', () => Number.NaN],
    ['a Map', () => new Map([[1, 2]])],
    ['two mebibytes', () => 'x'.repeat(2 * 1_048_576)],
  ])('a step that returns %s rejects, and is not recorded', async (_what, result) => {
    const { runs } = await start();
    let refusal: unknown;
    const job = await runs(async (running) => {
      await running.step('odd', result).catch((error: unknown) => {
        refusal = error;
      });
      return running.step('sound', () => 'went on');
    });
    expect(refusal).toMatchObject({ code: 'STEP_UNRECORDABLE' });
    expect(job.returnvalue).toBe('went on');
    expect((await job.steps()).map(({ name }) => name)).toEqual(['sound']);
  });

  test('a step whose result cannot be recorded fails its job for good: its effect happens once', async () => {
    const { runs } = await start();
    let charged = 0;
    const charge = (): unknown => {
      charged += 1;
      return { receipt: () => 1 };
    };
    const job = await runs((running) => running.step('charge', charge), {}, { attempts: 3 });
    expect([charged, job.attemptsMade, await job.isFailed()]).toEqual([1, 1, true]);
    expect(job.failedReason).toMatch(/^Step "charge" of job .* cannot be recorded: the result: it.receipt is a function/);
  });

  test('a step beyond the thousandth does not begin, and its job fails for good', async () => {
    const { runs } = await start();
    const begun: number[] = [];
    const walk = async (running: Job): Promise<void> => {
      for (let n = 1; n <= 1001; n += 1) await running.step(`step ${n}`, () => void begun.push(n));
    };
    const job = await runs(walk, {}, { attempts: 3 });
    expect([begun.length, begun.at(-1), job.attemptsMade, await job.isFailed()]).toEqual([1000, 1000, 1, true]);
    expect(job.failedReason).toContain('a job keeps 1000 steps');
  });

  test('a signal with odd input, or for a job that cannot take it, is refused', async () => {
    const { queue, runs } = await start();
    const job = await queue.add('waits', {}, { delay: 600_000 });
    for (const [, name] of ODD_NAMES) {
      await expect(queue.signal(job.id, name as string)).rejects.toMatchObject({ code: 'INVALID_STEP' });
    }
    await expect(queue.signal(job.id, 'go', () => 1)).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' });
    await expect(queue.signal(job.id, 'go', 'x'.repeat(1_048_576))).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
    await expect(queue.signal('no-such-job', 'go')).rejects.toMatchObject({ code: 'JOB_MISSING' });
    await expect(queue.signal('', 'go')).rejects.toMatchObject({ code: 'INVALID_JOB_ID' });
    expect(await job.steps()).toEqual([]);
    await job.remove();
    const ended = await runs(async () => 1);
    await expect(queue.signal(ended.id, 'go')).rejects.toMatchObject({ code: 'JOB_STATE' });
  });

  test('a cancel with odd input is refused, and a second cancel changes nothing', async () => {
    const { queue } = await start();
    const job = await queue.add('waits', {});
    await expect(queue.cancel(job.id, 7 as unknown as string)).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    await expect(queue.cancel(job.id, 'x', { childrn: true } as object)).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    await expect(queue.cancel(7 as unknown as string)).rejects.toMatchObject({ code: 'INVALID_JOB_ID' });
    await expect(queue.cancelJobs({ types: ['failed'] as never })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    await expect(queue.cancelJobs({ types: [] })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    await expect(queue.cancelJobs({ name: 'pdf' } as object)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'name' });
    await expect(queue.cancelJobs({ limit: 0 })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    expect(await job.getState()).toBe('waiting');
    const odd = `a\0b\ud800${'x'.repeat(5000)}`;
    expect(await queue.cancel(job.id, odd)).toBe(true);
    expect(await queue.cancel(job.id, 'again')).toBe(false);
    expect(await queue.cancel('no-such-job')).toBe(false);
    const { failedReason } = (await queue.getJob(job.id)) as Job;
    expect(failedReason).toMatch(/^cancelled: a.*b/);
    expect(failedReason.length).toBeLessThan(1100);
  });
});

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, '5', null])(
  'a timeoutMs of %s is refused by a worker and by a job',
  async (timeoutMs) => {
    const options = { connection: 'memory:', autorun: false, timeoutMs: timeoutMs as number };
    expect(() => new Worker('q', async () => undefined, options)).toThrow(/timeoutMs/);
    const queue = new Queue('q', { connection: 'memory:' });
    onTestFinished(() => queue.close());
    await expect(queue.add('job', {}, { timeoutMs: timeoutMs as number })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
  },
);

test.each([-1, Number.NaN, 2 ** 31])('a timeoutGraceMs of %s is refused by a worker', (timeoutGraceMs) => {
  const options = { connection: 'memory:', autorun: false, timeoutGraceMs };
  expect(() => new Worker('q', async () => undefined, options)).toThrow(/timeoutGraceMs/);
});

test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5'])(
  'a sleep of %s is refused, and the handler goes on',
  async (ms) => {
    const connection = 'memory:';
    const queue = new Queue('sleepers', { connection });
    const worker = new Worker(
      'sleepers',
      async (job) => {
        await expect(job.sleep('nap', ms as number)).rejects.toMatchObject({ code: 'INVALID_OPTION' });
        await expect(job.waitFor('signal', { timeoutMs: ms as number })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
        return 'went on';
      },
      { connection },
    );
    onTestFinished(async () => {
      await worker.close();
      await queue.close();
    });
    expect(await queue.addAndWait('job', {}, {}, 20_000)).toBe('went on');
  },
);
