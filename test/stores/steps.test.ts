// Steps, sleeps and signals as a handler sees them, on every store.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import type { StepContext } from '../../src/handle/steps.js';
import { DelayedError } from '../../src/job/signals.js';
import { Queue } from '../../src/queue/queue.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { newSession } from '../../src/testing/conformance/samples.js';
import { interruptAfterStep } from '../../src/testing/interrupt.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { newGate, openGates } from '../support/wait/gate.js';
import type { Write } from '../../src/store/contract/index.js';
import { sleep, until } from '../support/wait/until.js';

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => {
    openGates();
    return made.close();
  });
  return made;
}

describe.each(ENGINES)('steps on %s', (engine: Engine) => {
  async function start() {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    const errors: Error[] = [];
    const work = (handler: (job: Job) => Promise<unknown>, options: object = {}): Worker => {
      const worker = kept(new Worker(name, handler, { connection, drainDelay: 1, ...options }));
      worker.on('error', (error) => errors.push(error));
      return worker;
    };
    const ended = (job: Job): Promise<Job> =>
      until(`job ${job.id} to end`, async () => {
        const now = await queue.getJob(job.id);
        return now?.finishedOn === undefined ? undefined : now;
      });
    return { connection, name, queue, work, ended, errors };
  }

  test.each(['returns', 'throws an error of its own'] as const)(
    'a handler that catches a suspension and %s causes a warning, once',
    async (then) => {
      const { queue, work, ended, errors } = await start();
      const warnings: string[] = [];
      const note = (warning: Error & { code?: string }): void => {
        if (warning.code === 'HOLDFAST_SUSPENSION_CAUGHT') warnings.push(warning.message);
      };
      process.on('warning', note);
      onTestFinished(() => void process.off('warning', note));
      let refunds = 0;
      work(async (running) => {
        // This one lets the errors of its waits pass.
        if (running.name === 'careful') {
          try {
            await running.sleep('short', 1);
          } catch (error) {
            if (error instanceof DelayedError) throw error;
            refunds += 100;
          }
          return 'shipped';
        }
        try {
          await running.sleep('first', 1);
          await running.sleep('second', 1);
        } catch {
          refunds += 1;
          if (then === 'throws an error of its own') throw new Error('refunded');
        }
        return 'shipped';
      });
      const careful = await queue.add('careful', {});
      const jobs = await queue.addBulk([
        { name: 'careless', data: {} },
        { name: 'careless', data: {} },
      ]);
      for (const job of [careful, ...jobs]) expect((await ended(job)).returnvalue).toBe('shipped');
      await until('the warnings', () => warnings.length >= 2);
      expect(refunds).toBe(4);
      expect(warnings).toHaveLength(2);
      expect(warnings[0]).toMatch(/went on after the wait "first" had ended its run.*Throw the error again/s);
      expect(warnings[1]).toContain('"second"');
      expect(errors.map(({ message }) => message)).toEqual(then === 'returns' ? [] : Array(4).fill('refunded'));
    },
  );

  test('S8-7 a step runs once over all attempts, and its result and key stay the same', async () => {
    const { queue, work, ended } = await start();
    const calls: string[] = [];
    const seen: unknown[] = [];
    const contexts: StepContext[] = [];
    const job = await queue.add('order', {}, { attempts: 3 });
    work(async (running) => {
      const user = await running.step('fetch', () => {
        calls.push('fetch');
        return { name: 'Ada', at: new Date(0) };
      });
      seen.push(user);
      await running.step('pay', (context) => {
        calls.push('pay');
        contexts.push(context);
        if (calls.length < 4) throw new Error('declined');
      });
      return 'paid';
    });
    const { returnvalue, attemptsMade } = await ended(job);
    expect([returnvalue, attemptsMade]).toEqual(['paid', 3]);
    expect(calls).toEqual(['fetch', 'pay', 'pay', 'pay']);
    expect(new Set(contexts.map(({ key }) => key)).size).toBe(1);
    const fences = contexts.map(({ fence }) => fence);
    expect(fences).toEqual(fences.toSorted((a, b) => a - b));
    expect(new Set(fences).size).toBe(3);
    const json = { name: 'Ada', at: '1970-01-01T00:00:00.000Z' };
    expect(seen, 'the first run gets what the later ones get').toEqual([json, json, json]);
    const names = (await (await queue.getJob(job.id))?.steps())?.map(({ name, kind }) => `${kind} ${name}`);
    expect(names).toEqual(['step fetch', 'step pay']);
  });

  test('the steps of a job that is added again under the same id get other keys', async () => {
    const { queue, work, ended } = await start();
    const keys: string[] = [];
    work((running) => running.step('pay', ({ key }) => void keys.push(key)));
    for (const timestamp of [1, 2]) {
      await ended(await queue.add('order', {}, { jobId: 'order-1', timestamp }));
      expect(await queue.remove('order-1')).toBe(1);
    }
    await ended(await queue.add('order', {}, { jobId: 'order-2', timestamp: 2 }));
    expect(new Set(keys).size).toBe(3);
  });

  test('a wait that was promoted goes on, and times out when it would have', async () => {
    const { queue, work } = await start();
    work((running) => running.waitFor('approval', { timeoutMs: 600_000 }));
    const { id } = await queue.add('order', {});
    const waiting = async (run: number): Promise<number> =>
      until(`the wait of run ${run}`, async () => {
        const job = await queue.getJob(id);
        return job?.attemptsStarted === run && (await job.getState()) === 'delayed' ? job.delay : undefined;
      });
    const first = await waiting(1);
    await sleep(60);
    await (await queue.getJob(id))?.promote();
    expect(first - (await waiting(2))).toBeGreaterThan(40);
  });

  test('a step whose record gets no reply is repeated while its lock is held, and given up when it is lost', async () => {
    const { inner, store, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection: inner }));
    let tries = 0;
    const isStep = (_queue: string, [write]: readonly Write[]): boolean => write?.kind === 'step' && (tries += 1) > 0;
    const broken = store.on('write', { fault: 'fail', when: isStep });
    const ends: unknown[] = [];
    let runs = 0;
    const handler = async (running: Job): Promise<string> => {
      runs += 1;
      await running
        .step('pay', () => undefined)
        .catch((error: { code: unknown }) => {
          ends.push(error.code);
          throw error;
        });
      return 'paid';
    };
    const worker = kept(new Worker(name, handler, { connection: store, drainDelay: 1, lockRenewTime: 100 }));
    worker.on('error', () => undefined);
    const { id } = await queue.add('order', {});
    await until('several tries', () => tries > 2);
    expect(ends).toEqual([]);
    await inner.change(name, [id], { kind: 'revoke', reason: 'operator' });
    await until('the step to be given up', () => ends.length > 0);
    broken.remove();
    await until('the job to complete', async () => (await queue.getJobState(id)) === 'completed');
    expect([ends.length, runs]).toEqual([1, 2]);
  });

  test('a step that its handler forgets, and one that it no longer asks for, cause a warning each', async () => {
    const { queue, work, ended } = await start();
    const warnings: string[] = [];
    const note = ({ code, message }: Error & { code?: string }): void =>
      void warnings.push(`${code} ${/"(?:old|new|forgotten)"/.exec(message)?.[0]}`);
    process.on('warning', note);
    onTestFinished(() => void process.off('warning', note));
    const goOn = newGate();
    work(async (running) => {
      if (running.name === 'forgets') {
        void running.step('forgotten', () => goOn.opened);
        return;
      }
      await running.step('same', () => 1);
      await running.step(running.attemptsMade === 0 ? 'old' : 'new', () => 1);
      if (running.attemptsMade === 0) throw new Error('again');
    });
    await ended(await queue.add('careful', {}, { attempts: 2 }));
    await until('the first warning', () => warnings.length > 0);
    expect(warnings).toEqual(['HOLDFAST_STEPS_UNASKED "old"']);
    await ended(await queue.add('forgets', {}));
    await until('the second warning', () => warnings.length > 1);
    expect(warnings[1]).toMatch(/^HOLDFAST_CALL_FORGOTTEN/);
    goOn.open();
  });

  test('a cancelled run that goes on begins no further step', async () => {
    const { queue, work, ended } = await start();
    const began = newGate();
    let worked = false;
    let refusal: unknown;
    work(async (running) => {
      const aborted = new Promise((resolve) => running.lock.signal.addEventListener('abort', resolve));
      began.open();
      await aborted;
      await running
        .step('late', () => void (worked = true))
        .catch((error: unknown) => {
          refusal = error;
        });
      throw new Error('stopped');
    });
    const job = await queue.add('order', {});
    await began.opened;
    expect(await queue.cancel(job.id, 'enough')).toBe(true);
    await ended(job);
    expect(worked).toBe(false);
    expect(refusal).toMatchObject({ code: 'CANCELLED' });
  });

  test('a run that is interrupted after a step goes on behind it, and no attempt counts', async () => {
    const { queue, work, ended } = await start();
    const calls: string[] = [];
    const worker = work(async (running) => {
      for (const name of ['a', 'b', 'c']) await running.step(name, () => void calls.push(name));
    });
    const interrupted = interruptAfterStep(worker, 'b');
    const job = await queue.add('order', {});
    await interrupted;
    const { attemptsMade, attemptsStarted, stalledCounter, failedReason } = await ended(job);
    expect(calls).toEqual(['a', 'b', 'c']);
    expect([attemptsMade, attemptsStarted, stalledCounter, failedReason]).toEqual([1, 2, 0, undefined]);
  });

  test('S8-7 a run that has lost its lock records nothing, and its step rejects with LOCK_LOST', async () => {
    const { connection, name, queue, work, ended } = await start();
    const [began, goOn] = [newGate(), newGate()];
    let runs = 0;
    let refusal: unknown;
    work(async (running) => {
      runs += 1;
      if (runs > 1) return running.step('pay', () => 'second');
      return running
        .step('pay', async () => {
          began.open();
          await goOn.opened;
          return 'first';
        })
        .catch((error: unknown) => {
          refusal = error;
          throw error;
        });
    });
    const job = await queue.add('order', {});
    await began.opened;
    await connection.change(name, [job.id], { kind: 'revoke', reason: 'taken away' });
    const other = kept(new Worker(name, (running) => running.step('pay', () => 'second'), { connection, drainDelay: 1 }));
    expect((await ended(job)).returnvalue).toBe('second');
    goOn.open();
    await until('the late step to be refused', () => refusal);
    expect(refusal).toMatchObject({ code: 'LOCK_LOST' });
    expect(await (await queue.getJob(job.id))?.steps()).toEqual([{ name: 'pay', kind: 'step', value: 'second' }]);
    await other.close();
  });

  test('a step whose record got no reply is recorded once, and its work is not repeated', async () => {
    const { connection, name, queue, ended } = await start();
    const store = new FaultyStore(connection);
    store.on('write', { fault: 'drop-reply', times: 1 });
    let calls = 0;
    const worker = kept(new Worker(name, (job) => job.step('pay', () => ++calls), { connection: store, drainDelay: 1 }));
    worker.on('error', () => undefined);
    const job = await queue.add('order', {});
    expect((await ended(job)).returnvalue).toBe(1);
    expect(calls).toBe(1);
  });

  test('sleep gives the slot back, counts no attempt, and the job goes on behind it', async () => {
    const { queue, work, ended } = await start();
    const order: string[] = [];
    work(async (running) => {
      order.push(`${running.name} begins`);
      if (running.name === 'long') await running.sleep('nap', 300);
      order.push(`${running.name} ends`);
    });
    const [long, short] = [await queue.add('long', {}), await queue.add('short', {})];
    await ended(short);
    const { attemptsMade, attemptsStarted, stalledCounter } = await ended(long);
    expect(order).toEqual(['long begins', 'short begins', 'short ends', 'long begins', 'long ends']);
    expect([attemptsMade, attemptsStarted, stalledCounter]).toEqual([1, 2, 0]);
    expect(await long.steps()).toEqual([{ name: 'nap', kind: 'sleep' }]);
  });

  test('sleep sets the count of stalls to 0', async () => {
    const { connection, name, queue, work, ended } = await start();
    const job = await queue.add('tour', {});
    const session = newSession(name, 60_000, {});
    await connection.openSession(session);
    await connection.claim(name, { session: session.id, seq: 1, count: 1, timedMs: 1 });
    await until('the sweep to find the stall', async () => (await connection.sweep(name, 10)).stalled.length === 1);
    const stalls: number[] = [];
    work(async (running) => {
      stalls.push(running.stalledCounter);
      await running.sleep('nap', 1);
    });
    expect([(await ended(job)).stalledCounter, stalls]).toEqual([0, [1, 0]]);
  });

  test('S8-7 waitFor frees its slot until the signal comes, and returns the data', async () => {
    const { queue, work, ended } = await start();
    work(async (running) => (await running.waitFor<{ by: string }>('approval', { timeoutMs: 600_000 })).by);
    const job = await queue.add('order', {});
    await until('the job to wait', async () => (await job.getState()) === 'delayed');
    expect(await queue.signal(job.id, 'other', 1)).toBe(true);
    expect(await queue.signal(job.id, 'approval', { by: 'Ada' })).toBe(true);
    expect(await queue.signal(job.id, 'approval', { by: 'Bob' })).toBe(false);
    expect((await ended(job)).returnvalue).toBe('Ada');
  });

  test('a waitFor of less than a second waits too, and frees its slot', async () => {
    const { queue, work, ended } = await start();
    let runs = 0;
    work(async (running) => {
      runs += 1;
      return running.waitFor('go', { timeoutMs: 900 });
    });
    const job = await ended(await queue.add('order', {}));
    expect(job.failedReason).toContain('got no signal "go" in time');
    expect(runs).toBe(2);
  });

  test('S8-7 waitFor finds a signal that came before, without a delay', async () => {
    const { queue, work, ended } = await start();
    const job = await queue.add('order', {});
    await queue.signal(job.id, 'approval', { by: 'Ada' });
    work(async (running) => (await running.waitFor<{ by: string }>('approval')).by);
    const { returnvalue, attemptsStarted } = await ended(job);
    expect([returnvalue, attemptsStarted]).toEqual(['Ada', 1]);
  });

  test('waitFor finds a signal that comes after the run has read its steps', async () => {
    const { queue, work, ended } = await start();
    work(async (running) => {
      await running.step('read', () => 1);
      await queue.signal(running.id, 'approval', 'now');
      return running.waitFor('approval');
    });
    const job = await queue.add('order', {});
    const { returnvalue, attemptsStarted } = await ended(job);
    expect([returnvalue, attemptsStarted]).toEqual(['now', 1]);
  });

  test('waitFor rejects with TIMEOUT when no signal comes, and again on later runs', async () => {
    const { queue, work, ended } = await start();
    const codes: unknown[] = [];
    const accepted: boolean[] = [];
    work(async (running) => {
      const reply = await running.waitFor('approval', { timeoutMs: 50 }).catch((error: { name: string; code: unknown }) => {
        if (error.name === 'DelayedError') throw error;
        codes.push(error.code);
        return 'nothing';
      });
      accepted.push(await queue.signal(running.id, 'approval', 'late'));
      if (codes.length === 1) throw new Error('once more');
      return reply;
    });
    const job = await queue.add('order', {}, { attempts: 2 });
    expect((await ended(job)).returnvalue).toBe('nothing');
    expect(codes).toEqual(['TIMEOUT', 'TIMEOUT']);
    expect(accepted).toEqual([false, false]);
    expect((await job.steps()).map(({ kind, name }) => [kind, name])).toEqual([
      ['wait', 'approval'],
      ['timeout', 'approval'],
    ]);
  });

  test('S8-7 a retry from a step repeats it and the later ones', async () => {
    const { queue, work, ended } = await start();
    const calls: string[] = [];
    work(async (running) => {
      for (const name of ['a', 'b', 'c']) await running.step(name, () => void calls.push(name));
      if (calls.length < 4) throw new Error('broken');
    });
    const job = await queue.add('order', {});
    expect((await ended(job)).failedReason).toBe('broken');
    await expect(job.retry('failed', { fromStep: 'x' })).rejects.toMatchObject({ code: 'INVALID_STEP' });
    expect(await job.getState()).toBe('failed');
    await job.retry('failed', { fromStep: 'b' });
    await until('the job to complete', async () => (await job.getState()) === 'completed');
    expect(calls).toEqual(['a', 'b', 'c', 'b', 'c']);
  });

  test('steps of one run can be made at the same time', async () => {
    const { queue, work, ended } = await start();
    work((running) => Promise.all(['a', 'b', 'c'].map((name) => running.step(name, () => name.toUpperCase()))));
    const job = await queue.add('order', {});
    expect((await ended(job)).returnvalue).toEqual(['A', 'B', 'C']);
  });

  test('a name used twice in one run is refused with STEP_REPEATED, whatever it names', async () => {
    const { queue, work, ended } = await start();
    const codes: unknown[] = [];
    const refused = (error: { code: unknown }): void => void codes.push(error.code);
    work(async (running) => {
      await running.step('a', () => 1);
      await running.step('a', () => 2).catch(refused);
      await running.sleep('a', 0).catch(refused);
      await running.waitFor('a').catch(refused);
    });
    await ended(await queue.add('order', {}));
    expect(codes).toEqual(['STEP_REPEATED', 'STEP_REPEATED', 'STEP_REPEATED']);
  });

  test('a job that waits for a signal goes on waiting when it is promoted', async () => {
    const { queue, work, ended } = await start();
    let runs = 0;
    work(async (running) => {
      runs += 1;
      return running.waitFor('approval', { timeoutMs: 600_000 });
    });
    const job = await queue.add('order', {});
    const waits = async (): Promise<boolean> => (await job.getState()) === 'delayed';
    await until('the job to wait', waits);
    await queue.promoteJobs();
    await until('the job to wait again', async () => runs === 2 && (await waits()));
    await queue.signal(job.id, 'approval', 'now');
    const { returnvalue, failedReason } = await ended(job);
    expect([returnvalue, failedReason]).toEqual(['now', undefined]);
  });

  test('a run that waits for two signals at once fails with INVALID_STEP', async () => {
    const { queue, work, ended } = await start();
    work((running) => Promise.race([running.waitFor('yes'), running.waitFor('no')]));
    const { failedReason } = await ended(await queue.add('order', {}));
    expect(failedReason).toContain('at the same time');
  });

  test('a sleep beside a step lets the step be recorded first', async () => {
    const { queue, work, ended } = await start();
    const calls: string[] = [];
    work(async (running) => {
      await Promise.all([
        running.sleep('nap', 1),
        running.step('slow', async () => {
          calls.push('slow');
          await new Promise((resolve) => setTimeout(resolve, 50));
        }),
      ]);
    });
    const { attemptsMade } = await ended(await queue.add('order', {}));
    expect([calls, attemptsMade]).toEqual([['slow'], 1]);
  });

  test('a step that the handler does not await ends no process, and the job completes', async () => {
    const { queue, work, ended } = await start();
    const late = newGate();
    work(async (running) => {
      void running.step('late', () => late.opened);
      return 'done';
    });
    const job = await ended(await queue.add('order', {}));
    late.open();
    expect(job.returnvalue).toBe('done');
    expect(await job.steps()).toEqual([]);
  });
});
