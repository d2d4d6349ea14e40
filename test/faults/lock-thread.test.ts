// The lock thread dies: it is told, the event loop stands in, the thread comes back, and nobody loses a lock over it.
// Runs the built package, for a thread cannot load TypeScript.
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { type Engine, LOCK_ENGINES, newScene, type Scene } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { outcomeOf, until } from '../support/wait/until.js';
import { newGate } from '../support/wait/gate.js';

const ENTRY = fileURLToPath(new URL('./fixtures/mortal-thread.mjs', import.meta.url));

interface Place extends Scene {
  worker(
    processor: (job: { id: string }) => unknown,
    options?: WorkerOptions,
  ): { worker: Worker; errors: Error[]; stalled: string[] };
  /** The thread of the process dies at its next look. */
  condemn(death: 'exit' | 'throw'): void;
  /** … and has found its death when this resolves. */
  kill(death: 'exit' | 'throw'): Promise<void>;
}

async function place(engine: Engine = 'sqlite'): Promise<Place> {
  const scene = await newScene(engine);
  const { connection } = scene;
  const death = join(scene.folder, 'death');
  process.env['THREAD_DEATH'] = death;
  // In one step, or the thread might read half of it.
  const condemn = (kind: 'exit' | 'throw'): void => {
    writeFileSync(`${death}.new`, kind);
    renameSync(`${death}.new`, death);
  };
  return {
    ...scene,
    worker: (processor, options = {}) => {
      const worker = new Worker('work', processor, {
        connection,
        lockThreadEntry: ENTRY,
        // So long that the loop, which stands in for the thread, comes to no renewal before the thread's first one.
        lockDuration: 12_000,
        lockRenewTime: 5000,
        stalledInterval: 50,
        ...options,
      });
      onTestFinished(() => worker.close(true));
      const errors: Error[] = [];
      const stalled: string[] = [];
      worker.on('error', (error) => errors.push(error));
      worker.on('stalled', (jobId) => stalled.push(jobId));
      return { worker, errors, stalled };
    },
    condemn,
    kill: async (kind) => {
      condemn(kind);
      await until('the thread to find its death', () => !existsSync(death));
    },
  };
}

function threaded(worker: Worker, running: boolean): Promise<unknown> {
  return until(`the thread to be ${running ? 'there' : 'gone'}`, () => worker.lockManagerThread?.isRunning() === running);
}

/** The first renewal of a job is the thread's: then the thread is known to be there. */
function renewed(worker: Worker): Promise<unknown> {
  return new Promise((resolve) => worker.once('locksRenewed', resolve));
}

describe.each(oneInThisRun(LOCK_ENGINES))('the lock thread on %s', (engine) => {
  test.each(['exit', 'throw'] as const)(
    'dies (%s) during a job: it is reported and restarted, the loop renews, and the job runs once',
    async (death) => {
      const { queue, store, worker: make, kill } = await place(engine);
      const finish = newGate();
      const job = await queue.add('long', {});
      const { worker, errors, stalled } = make(() => finish.opened);
      const renewals = async (): Promise<number> => (await store.sessions('work'))[0]?.renewals ?? 0;
      await renewed(worker);
      const before = await renewals();
      await kill(death);
      await threaded(worker, false);
      await until('the loop to renew', async () => (await renewals()) > before);
      await threaded(worker, true);
      expect(await renewals()).toBe(before + 2);
      finish.open();
      await worker.close();
      expect(await queue.getJob(job.id)).toMatchObject({ attemptsStarted: 1, stalledCounter: 0 });
      expect(await (await queue.getJob(job.id))?.getState()).toBe('completed');
      expect(stalled).toEqual([]);
      expect(errors).toHaveLength(1);
      expect(errors[0]).toMatchObject({
        code: 'THREAD_FAILED',
        message: expect.stringContaining('The dedicated lock thread died'),
      });
    },
  );

  test('dies again and again: each death is reported, and locks are kept', async () => {
    const { queue, worker: make, kill } = await place(engine);
    const finish = newGate();
    const job = await queue.add('long', {});
    const { worker, errors, stalled } = make(() => finish.opened);
    await renewed(worker);
    for (let deaths = 1; deaths <= 3; deaths += 1) {
      await threaded(worker, true);
      await kill('exit');
      await until('the death to be told', () => errors.length === deaths);
    }
    finish.open();
    await worker.close();
    expect(await queue.getJob(job.id)).toMatchObject({ attemptsStarted: 1, stalledCounter: 0 });
    expect(stalled).toEqual([]);
  });

  test('dies while it serves two workers: both report it, and both go on', async () => {
    const { queue, worker: make, kill } = await place(engine);
    const finish = newGate();
    const jobs = await queue.addBulk([
      { name: 'a', data: {} },
      { name: 'b', data: {} },
    ]);
    const both = [make(() => finish.opened), make(() => finish.opened)];
    await Promise.all(both.map(({ worker }) => renewed(worker)));
    await until('both to run', async () => (await queue.getActiveCount()) === 2);
    await kill('exit');
    for (const { errors } of both) await until('the death to be told', () => errors.length === 1);
    for (const { worker } of both) await threaded(worker, true);
    finish.open();
    await Promise.all(both.map(({ worker }) => worker.close()));
    for (const { id } of jobs) expect(await queue.getJob(id)).toMatchObject({ attemptsStarted: 1, stalledCounter: 0 });
  });

  test('does not keep close() waiting when it is dead or dies meanwhile', async () => {
    const { worker: make, condemn, kill } = await place(engine);
    const first = make(() => undefined);
    await threaded(first.worker, true);
    await kill('exit');
    await threaded(first.worker, false);
    expect(await outcomeOf(first.worker.close(), paced(3000))).toBe('resolved');
    const second = make(() => undefined);
    await threaded(second.worker, true);
    condemn('exit');
    expect(await outcomeOf(second.worker.close(), paced(3000))).toBe('resolved');
  });

  test('dies while the loop is blocked: the job is recovered elsewhere, the late finish is refused, and both are reported', async () => {
    const { queue, url: connection, kill } = await place(engine);
    const options = { lockThreadEntry: ENTRY, lockDuration: paced(800), lockRenewTime: paced(200), stalledInterval: 100 };
    const blocked = new WorkerProcess({ queue: 'work', connection, options: { ...options, name: 'blocked' } });
    await blocked.moment('ready');
    const job = await queue.add('spin', { ms: 6000, only: 'blocked' });
    await blocked.moment('started');
    await kill('exit');
    const other = new WorkerProcess({ queue: 'work', connection, options: { ...options, name: 'other' } });
    await other.moment('completed');
    await blocked.moment('error', ({ args }) => (args as [{ message: string }])[0].message.startsWith('Could not settle job'));
    expect(other.all('stalled').map(({ args }) => args)).toEqual([[job.id, 'active']]);
    expect(blocked.all('completed')).toEqual([]);
    const fences = [...blocked.all('started'), ...other.all('started')].map(({ fence }) => fence as number);
    expect(fences).toHaveLength(2);
    expect(fences[1]).toBeGreaterThan(fences[0] ?? Number.POSITIVE_INFINITY);
    expect((await queue.getJob(job.id))?.returnvalue).toEqual({ by: 'other' });
  });
});

test('reports how long the loop was blocked, once it is free', async () => {
  const { queue, worker: make } = await place();
  let lastedMs = 0;
  const { worker, errors } = make(() => {
    const start = performance.now();
    while ((lastedMs = performance.now() - start) < 3000);
  });
  const told: number[] = [];
  worker.lockManagerThread?.on('loopBlocked', (blockedMs) => told.push(blockedMs));
  const onWorker: number[] = [];
  worker.on('loopBlocked', (blockedMs) => onWorker.push(blockedMs));
  await threaded(worker, true);
  await queue.add('spin', {});
  await until('the block to be told', () => told.length > 0);
  expect(told).toHaveLength(1);
  expect(onWorker).toEqual(told);
  // The thread itself may have been kept waiting for a while.
  expect(told[0]).toBeGreaterThanOrEqual(1000);
  expect(told[0]).toBeLessThan(lastedMs + paced(600));
  expect(errors).toEqual([]);
});
