// Who did it, and what goes on: what a worker says of itself, of outages, of blocked loops, of cancelled jobs and of a close that waits.
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { QueueEvents } from '../../src/events/queue-events.js';
import { Queue } from '../../src/queue/queue.js';
import { ENGINES, next, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';
import { newGate } from '../support/wait/gate.js';

interface Warned extends Error {
  code?: string;
}

/** Warnings of this process with the code. */
function warnings(code: string): Warned[] {
  const seen: Warned[] = [];
  const note = (warning: Warned): void => {
    if (warning.code === code) seen.push(warning);
  };
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  return seen;
}

describe.each(ENGINES)('reports on %s', (engine) => {
  test('show host and process in processedBy, or the name of the worker', async () => {
    const { add, worker, record, inner, queue } = await scene(engine);
    const first = await add();
    const { worker: unnamed } = worker(() => 'done');
    await next(unnamed, 'completed');
    expect(unnamed.opts.name).toBe(`${hostname()}:${process.pid}`);
    expect(await record(first)).toMatchObject({ processedBy: `${hostname()}:${process.pid}` });
    expect(await inner.sessions(queue)).toMatchObject([{ owner: { name: `${hostname()}:${process.pid}` } }]);
    await unnamed.close();
    const second = await add();
    const { worker: named } = worker(() => 'done', { name: 'mailer' });
    await next(named, 'completed');
    expect(await record(second)).toMatchObject({ processedBy: 'mailer' });
  });

  test('emit an outage once, and its end once', async () => {
    const { store, worker } = await scene(engine);
    const { worker: watched, errors } = worker(() => 'done', { drainDelay: 1, lockDuration: 60_000 });
    const recovered: number[] = [];
    watched.on('recovered', (outageMs) => recovered.push(outageMs));
    await next(watched, 'ready');
    for (const round of [1, 2]) {
      const outage = store.on('claim', { fault: 'fail' });
      await until('calls to fail again and again', () => outage.struck >= 3);
      expect(errors).toHaveLength(round);
      expect(recovered).toHaveLength(round - 1);
      outage.remove();
      await until('its end to be told', () => recovered.length === round);
    }
    expect(Math.min(...recovered)).toBeGreaterThanOrEqual(100);
  });

  test('emit the end of an outage once on a queue and on QueueEvents too', async () => {
    const { store, queue } = await scene(engine);
    const adding = new Queue(queue, { connection: store });
    const events = new QueueEvents(queue, { connection: store, blockingTimeout: 20 });
    onTestFinished(async () => void (await Promise.all([adding.close(), events.close()])));
    const told: unknown[] = [];
    adding.on('error', () => told.push('add fails'));
    adding.on('recovered', (outageMs) => told.push(['add', outageMs >= 50]));
    events.on('error', () => told.push('read fails'));
    events.on('recovered', (outageMs) => told.push(['read', outageMs >= 50]));
    await events.waitUntilReady();
    await adding.add('before', {});
    expect(told).toEqual([]);
    for (const [verb, name] of [
      ['add', 'add'],
      ['events', 'read'],
    ] as const) {
      for (const _round of [1, 2]) {
        const outage = store.on(verb, { fault: 'fail' });
        const added = adding.add('meanwhile', {});
        await until('calls to fail again and again', () => outage.struck >= 3);
        outage.remove();
        await added;
        await until('its end to be told', () => Array.isArray(told.at(-1)));
        expect(told.splice(0)).toEqual([`${name} fails`, [name, true]]);
      }
    }
  });

  test('keep the reason of a cancelled job, whatever the handler throws', async () => {
    const { add, worker, record } = await scene(engine);
    const id = await add({ attempts: 1 });
    let thrown: unknown;
    const { worker: watched } = worker((_job, _token, signal) =>
      wait(60_000, undefined, { signal }).catch((error: unknown) => {
        thrown = error;
        throw error;
      }),
    );
    await next(watched, 'active');
    const failed = next(watched, 'failed');
    watched.cancelJob(id, 'the customer left');
    const [, error] = await failed;
    expect(error).toBe(thrown);
    expect(error).toMatchObject({ message: 'The operation was aborted', name: 'AbortError', cancelReason: 'the customer left' });
    expect(await record(id)).toMatchObject({ failedReason: 'The operation was aborted (cancelled: the customer left)' });
  });
});

describe('a cancelled job', () => {
  test.each([
    ['the reason itself', 'not wanted', (signal: AbortSignal) => signal.throwIfAborted(), 'not wanted'],
    ['an error as reason', new Error('not wanted'), (signal: AbortSignal) => signal.throwIfAborted(), 'not wanted'],
    ['an error that names it', 'not wanted', () => Promise.reject(new Error('stopped: not wanted')), 'stopped: not wanted'],
    ['no reason', undefined, () => Promise.reject(new Error('stopped')), 'stopped (cancelled)'],
  ])('fails with %s', async (_, reason, end, failedReason) => {
    const { add, worker, reaches } = await scene('memory');
    const id = await add({ attempts: 1 });
    const told = newGate();
    const { worker: watched } = worker(async (_job, _token, signal) => {
      await told.opened;
      return end(signal);
    });
    await next(watched, 'active');
    expect(watched.cancelJob(id, reason)).toBe(true);
    told.open();
    expect(await reaches(id, 'failed')).toMatchObject({ failedReason });
  });
});

test('a blocked loop is emitted by the worker each time, and warned of once', async () => {
  const { add, worker } = await scene('memory');
  const warned = warnings('HOLDFAST_LOOP_BLOCKED');
  const { worker: watched } = worker(() => {
    const end = performance.now() + 1800;
    while (performance.now() < end);
  });
  const told: number[] = [];
  watched.on('loopBlocked', (blockedMs) => told.push(blockedMs));
  for (const round of [1, 2]) {
    await add();
    await until('the block to be told', () => told.length === round);
  }
  expect(Math.min(...told)).toBeGreaterThan(1500);
  expect(warned).toHaveLength(1);
  expect(warned[0]?.message).toContain('No lock was renewed meanwhile');
});
