import { afterEach, expect, test } from 'vitest';
import { Lifecycle } from '../../src/worker/lifecycle.js';

const made: Lifecycle[] = [];

afterEach(() => {
  for (const lifecycle of made.splice(0)) lifecycle.closed();
});

function idle({ byHand = false } = {}): Lifecycle {
  const lifecycle = new Lifecycle('mail', byHand);
  made.push(lifecycle);
  return lifecycle;
}

const atOnce = async (): Promise<void> => undefined;

test('a worker passes from idle over starting and running to closing and closed', async () => {
  const lifecycle = idle();
  expect(lifecycle.state).toBe('idle');
  const ended = lifecycle.run();
  expect([lifecycle.state, lifecycle.isRunning]).toEqual(['starting', true]);
  lifecycle.started();
  expect(lifecycle.state).toBe('running');
  const closing = lifecycle.close(false, async () => lifecycle.closed());
  expect([lifecycle.state, lifecycle.isRunning, lifecycle.isClosing]).toEqual(['closing', false, true]);
  await closing;
  await ended;
  expect(lifecycle.state).toBe('closed');
});

test('a worker that is paused before it runs starts paused, and resumes to where its start has come', () => {
  const lifecycle = idle();
  expect(lifecycle.pause()).toBe(true);
  expect(lifecycle.pause()).toBe(false);
  expect([lifecycle.state, lifecycle.isPaused]).toEqual(['idle', true]);
  void lifecycle.run();
  expect([lifecycle.state, lifecycle.isRunning]).toEqual(['paused', true]);
  expect(lifecycle.resume()).toBe(true);
  expect(lifecycle.resume()).toBe(false);
  expect(lifecycle.state).toBe('starting');
  lifecycle.pause();
  lifecycle.started();
  expect(lifecycle.state).toBe('paused');
  lifecycle.resume();
  expect(lifecycle.state).toBe('running');
});

test('a start that ends after the close leaves the worker closed, and paused stays what it was', async () => {
  const lifecycle = idle();
  void lifecycle.run();
  lifecycle.pause();
  const closing = lifecycle.close(false, atOnce);
  lifecycle.started();
  expect([lifecycle.state, lifecycle.isPaused]).toEqual(['closing', true]);
  await closing;
});

test('run() is refused without a processor, a second time, and after close', async () => {
  const byHand = idle({ byHand: true });
  expect(byHand.state).toBe('by hand');
  expect(() => byHand.run()).toThrow(expect.objectContaining({ code: 'NO_PROCESSOR' }));
  const lifecycle = idle();
  void lifecycle.run();
  expect(() => lifecycle.run()).toThrow(expect.objectContaining({ code: 'ALREADY_RUNNING' }));
  await lifecycle.close(false, atOnce);
  expect(() => lifecycle.run()).toThrow(expect.objectContaining({ code: 'CLOSED' }));
  expect(() => lifecycle.checkOpen()).toThrow(expect.objectContaining({ code: 'CLOSED' }));
});

test('close() shuts down once, after it has returned, and a later call can still force it', async () => {
  const lifecycle = idle();
  let shutDowns = 0;
  const shutDown = async (): Promise<void> => {
    shutDowns += 1;
    await lifecycle.forced;
  };
  const first = lifecycle.close(false, shutDown);
  expect(shutDowns).toBe(0);
  expect(lifecycle.close(false, shutDown)).toBe(first);
  const second = lifecycle.close(true, shutDown);
  expect(second).toBe(first);
  await first;
  expect(shutDowns).toBe(1);
});

test('a start that the store refuses rejects run(), and the worker is idle again', async () => {
  const lifecycle = idle();
  const running = lifecycle.run();
  const attached = lifecycle.untilAttached();
  const reason = new Error('no such schema');
  lifecycle.refused(reason);
  await expect(running).rejects.toBe(reason);
  await expect(attached).rejects.toBe(reason);
  expect([lifecycle.state, lifecycle.refusal]).toEqual(['idle', reason]);
  // After that it may run, and a late refusal changes nothing.
  const again = lifecycle.run();
  lifecycle.started();
  lifecycle.refused(reason);
  expect(lifecycle.state).toBe('running');
  await lifecycle.close(false, async () => lifecycle.closed());
  lifecycle.refused(reason);
  expect(lifecycle.state).toBe('closed');
  await again;
});
