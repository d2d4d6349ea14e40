import { expect, test } from 'vitest';
import { ReplyTimeout } from '../../src/runtime/reply-timeout.js';
import { newGate } from '../support/wait/gate.js';

const late = (): Error => new Error('late');

test('returns the reply in time, or its failure', async () => {
  const patience = new ReplyTimeout();
  expect(await patience.wait(60_000, Promise.resolve(1), late)).toBe(1);
  await expect(patience.wait(60_000, Promise.reject(new Error('refused')), late)).rejects.toThrow('refused');
  patience.end();
});

test('gives up without a reply in time, and ignores the late reply', async () => {
  const patience = new ReplyTimeout();
  const first = newGate();
  await expect(
    patience.wait(
      5,
      first.opened.then(() => 'first'),
      late,
    ),
  ).rejects.toThrow('late');
  const second = newGate();
  const waiting = patience.wait(
    60_000,
    second.opened.then(() => 'second'),
    late,
  );
  first.open();
  await new Promise((resolve) => setImmediate(resolve));
  second.open();
  expect(await waiting).toBe('second');
  patience.end();
});

test('accepts a reply that came while the event loop was blocked', async () => {
  const patience = new ReplyTimeout();
  const answer = new Promise((resolve) => setTimeout(() => setImmediate(resolve, 'in time'), 1));
  const waiting = patience.wait(50, answer, late);
  for (const until = performance.now() + 100; performance.now() < until; );
  expect(await waiting).toBe('in time');
  patience.end();
});

test('shortens a timeout while it runs, and affects only calls that wait', async () => {
  const patience = new ReplyTimeout();
  patience.shorten(1);
  const waiting = patience.wait(60_000, new Promise(() => undefined), late);
  patience.shorten(1);
  await expect(waiting).rejects.toThrow('late');
  patience.end();
});
