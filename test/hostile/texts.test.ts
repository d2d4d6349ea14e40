// Odd texts through every store: names, ids, keys, payloads, progress, logs, reasons. What is accepted comes back as it was, under its
// own id and in its own queue, and is run once; what is refused leaves no trace. A value that broke out of a statement or a script would
// show up as a job too many, too few or changed.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Job, Queue, Worker } from '../../src/index.js';
import { ENGINES, type OpenEngine } from './engines.js';
import { oddText } from './odd-values.js';
import { holds, PATIENCE } from './property.js';
import { verdictOn, watchForDamage } from './verdict.js';

watchForDamage();

const newJob = fc.record({
  id: fc.option(oddText, { nil: undefined, freq: 6 }),
  name: oddText,
  text: oddText,
  lockKey: fc.option(oddText, { nil: undefined }),
  fails: fc.boolean(),
});
const REFUSALS = ['INVALID_JOB_ID', 'INVALID_JOB_NAME', 'INVALID_OPTION'];
const HALVES = { useDedicatedLockThread: false, drainDelay: 1 };

/** Free texts are kept without NUL and broken characters, which not every store can keep. */
const kept = (text: string): string => Buffer.from(text.replaceAll('\0', '\ufffd')).toString();

describe.each(Object.keys(ENGINES))('%s', (name) => {
  let engine: OpenEngine;
  let queues = 0;
  beforeAll(async () => {
    engine = await (ENGINES[name] as () => Promise<OpenEngine>)();
  });
  afterAll(() => engine?.close());

  test('jobs', PATIENCE, async () => {
    await holds(fc.array(newJob, { minLength: 5, maxLength: 25 }), 8, async (jobs) => {
      const queue = new Queue(`texts-${(queues += 1)}`, { connection: engine.connection });
      const worker = new Worker(queue.name, (job: Job) => run(job), {
        connection: engine.connection,
        concurrency: 5,
        autorun: false,
        ...HALVES,
      });
      const errors: Error[] = [];
      worker.on('error', (error) => errors.push(error));
      try {
        const expected = new Map<string, (typeof jobs)[number]>();
        for (const job of jobs) {
          const { id, lockKey } = job;
          const options = { ...(id !== undefined && { jobId: id }), ...(lockKey !== undefined && { lockKey }) };
          const { value: added, refused } = await verdictOn(() => queue.add(job.name, dataOf(job), options));
          if (added === undefined) expect(REFUSALS).toContain(refused?.code);
          else if (!added.duplicate) expected.set(added.id, job);
          if (id !== undefined && added !== undefined) expect(added.id).toBe(id);
        }
        expect(await total(queue)).toBe(expected.size);
        for (const [id, job] of expected) {
          const found = await queue.getJob(id);
          expect([found?.id, found?.name, found?.data]).toEqual([id, job.name, asJson(dataOf(job))]);
        }
        const running = worker.run();
        await allDone(queue, expected.size);
        await worker.close();
        await running;
        for (const [id, { text, fails }] of expected) {
          const job = await queue.getJob(id);
          const { logs } = await queue.getJobLogs(id);
          expect([await job?.getState(), job?.attemptsMade, job?.progress, logs]).toEqual(
            [fails ? 'failed' : 'completed', 1, { text }, [kept(text)]].map(asJson),
          );
          if (fails) expect(job?.failedReason).toBe(kept(text) || 'Error');
          else expect(job?.returnvalue).toEqual(asJson([text]));
        }
        expect(errors).toEqual([]);
      } finally {
        await worker.close();
        await queue.close();
      }
    });
  });

  test('queues that look alike are apart', PATIENCE, async () => {
    const names = fc.uniqueArray(
      fc.oneof(oddText, fc.constantFrom('a', 'A', 'a ', 'é', 'e\u0301', 'ab', 'a_', 'a%', 'a*', 'a?')),
      { minLength: 5, maxLength: 15 },
    );
    await holds(names, 4, async (given) => {
      const queues: Queue[] = [];
      try {
        for (const one of given) {
          const { value: queue, refused } = await verdictOn(() => new Queue(one, { connection: engine.connection }));
          if (queue === undefined) expect(refused?.code).toBe('INVALID_QUEUE_NAME');
          else queues.push(queue);
        }
        for (const queue of queues) {
          await queue.obliterate({ force: true });
          await queue.add(queue.name, queue.name);
        }
        for (const queue of queues) {
          expect(await total(queue)).toBe(1);
          expect((await queue.getJob('1'))?.data).toBe(queue.name);
        }
        for (const queue of queues) await queue.obliterate();
      } finally {
        await Promise.all(queues.map((queue) => queue.close()));
      }
    });
  });

  test('named locks that look alike are apart', PATIENCE, async () => {
    const queue = new Queue('locks', { connection: engine.connection, ...HALVES });
    onTestFinished(() => queue.close());
    await holds(fc.uniqueArray(oddText, { minLength: 3, maxLength: 10 }), 5, async (names) => {
      const taken = [];
      for (const one of names) {
        const { value: lock, refused } = await verdictOn(() => queue.takeLock(one));
        if (lock === undefined) expect(refused?.code).toBe('INVALID_OPTION');
        else taken.push({ one, lock });
      }
      for (const { one, lock } of taken) {
        expect((await queue.getNamedLock(one))?.fence).toBe(lock.fence);
        expect(await queue.takeLock(one)).toBeUndefined();
      }
      for (const { lock } of taken) await lock.release();
    });
  });

  test('ids that nobody has given find nothing', PATIENCE, async () => {
    const queue = new Queue('nobody', { connection: engine.connection });
    onTestFinished(() => queue.close());
    const { id } = await queue.add('job', 'untouched');
    await holds(
      oddText.filter((text) => text !== id),
      60,
      async (odd) => {
        const looks = [
          () => queue.getJob(odd),
          () => queue.remove(odd),
          () => queue.getJobLogs(odd),
          () => queue.getLock(odd),
          () => queue.getNamedLock(odd),
          () => queue.updateJobProgress(odd, 1),
        ];
        for (const look of looks) await verdictOn(look as () => Promise<unknown>);
      },
    );
    expect(await total(queue)).toBe(1);
    expect((await queue.getJob(id))?.data).toBe('untouched');
  });

  test('workers with odd names work', PATIENCE, async () => {
    await holds(fc.tuple(oddText, oddText), 12, async ([workerName, instanceId]) => {
      const queue = new Queue(`named-${(queues += 1)}`, { connection: engine.connection });
      const make = () =>
        new Worker(queue.name, async () => 1, { connection: engine.connection, name: workerName, instanceId, ...HALVES });
      const { value: worker, refused } = await verdictOn(make);
      try {
        expect(refused?.code ?? 'INVALID_OPTION').toBe('INVALID_OPTION');
        if (worker === undefined) return;
        worker.on('error', () => undefined);
        await queue.add('job', 1);
        await allDone(queue, 1);
        expect((await queue.getJob('1'))?.processedBy).toBe(workerName);
      } finally {
        await worker?.close();
        await queue.close();
      }
    });
  });
});

function dataOf({ text, fails }: { text: string; fails: boolean }) {
  return { text, fails, [`key ${text}`]: [text] };
}

async function run(job: Job): Promise<unknown> {
  const { text, fails } = job.data as ReturnType<typeof dataOf>;
  await job.updateProgress({ text });
  await job.log(text);
  if (fails) throw new Error(text);
  return [text];
}

async function total(queue: Queue): Promise<number> {
  const counts = await queue.getJobCounts();
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

async function allDone(queue: Queue, many: number): Promise<void> {
  for (;;) {
    const { completed = 0, failed = 0 } = await queue.getJobCounts('completed', 'failed');
    if (completed + failed === many) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function asJson<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
