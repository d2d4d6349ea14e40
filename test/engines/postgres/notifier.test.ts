// How the PostgreSQL store tells other processes of changes: when, how often, and what is pending when it closes.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { type Change, Notifier } from '../../../src/store/postgres/driver/notify.js';

const timers = (): number => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;

test('the notifier keeps the process alive on close until its last notification, and not longer', async () => {
  let sent = 0;
  const notifier = new Notifier(async () => (sent += 1));
  notifier.changed('work', 'jobs');
  // In its pause after the first one.
  await expect.poll(() => sent, { interval: 0 }).toBe(1);
  notifier.changed('mail', 'jobs');
  const before = timers();
  const closing = notifier.close();
  expect(timers()).toBe(before + 1);
  await closing;
  expect(timers()).toBeLessThanOrEqual(before);
  expect(sent).toBe(2);
});

test('the notifier groups changes in quick succession, and more of them the longer they last', async () => {
  let sent = 0;
  const notifier = new Notifier(async () => (sent += 1));
  const start = performance.now();
  let lastedMs = 0;
  for (; lastedMs < 100 || sent < 2; lastedMs = performance.now() - start) {
    notifier.changed('work', 'jobs');
    await new Promise((resolve) => setImmediate(resolve));
  }
  // After 1, 2, 4, 8 and then 10 ms each.
  expect(sent).toBeLessThanOrEqual(4 + lastedMs / 10);
  await notifier.close();
});

describe('an add that sends its own notification', () => {
  test('is used when none was sent a moment ago, and the next ones are grouped', async () => {
    const sent: Change[][] = [];
    const notifier = new Notifier(async (changes) => sent.push(changes));
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000);
    expect(notifier.isQuiet).toBe(true);
    notifier.sentByAdd();
    expect(notifier.isQuiet).toBe(false);
    notifier.changed('work', 'jobs');
    clock.mockReturnValue(2_000);
    // One is pending.
    expect(notifier.isQuiet).toBe(false);
    clock.mockRestore();
    await expect.poll(() => sent, { interval: 0 }).toEqual([[{ queue: 'work', brings: 'jobs' }]]);
    await expect.poll(() => notifier.isQuiet, { interval: 0 }).toBe(true);
    expect(sent).toHaveLength(1);
    await notifier.close();
    expect(notifier.isQuiet).toBe(false);
  });

  test('delays the next notifications, which go out together', async () => {
    const sent: Change[][] = [];
    const notifier = new Notifier(async (changes) => sent.push(changes));
    const begun = performance.now();
    notifier.sentByAdd();
    notifier.changed('work', 'news');
    // Its rest is over: the next add may tell of itself again.
    await expect.poll(() => notifier.isQuiet, { interval: 0 }).toBe(true);
    notifier.changed('mail', 'news');
    await expect.poll(() => sent.length, { interval: 0 }).toBe(1);
    expect(sent[0]).toHaveLength(2);
    expect(performance.now() - begun).toBeGreaterThan(30);
    await notifier.close();
  });
});

describe('the notification of a job that this process waits for', () => {
  test('says only that something changed when the job was taken at once', async () => {
    const sent: Change[][] = [];
    const notifier = new Notifier(async (changes) => sent.push(changes));
    notifier.changed('work', 'jobs', true);
    notifier.taken('work', notifier.changes);
    await expect.poll(() => sent, { interval: 0 }).toEqual([[{ queue: 'work', brings: 'news' }]]);
    await notifier.close();
  });

  test('is sent when no worker took the job', async () => {
    const sent: Change[][] = [];
    const notifier = new Notifier(async (changes) => sent.push(changes));
    const begun = performance.now();
    notifier.changed('work', 'jobs', true);
    await expect.poll(() => sent, { interval: 0 }).toEqual([[{ queue: 'work', brings: 'jobs' }]]);
    expect(performance.now() - begun).toBeGreaterThan(3);
    await notifier.close();
  });

  test('is sent when another job came after the claim, or another change is pending', async () => {
    const sent: Change[][] = [];
    const notifier = new Notifier(async (changes) => sent.push(changes));
    notifier.changed('work', 'jobs', true);
    const before = notifier.changes;
    notifier.changed('work', 'jobs');
    notifier.taken('work', before);
    await expect.poll(() => sent, { interval: 0 }).toEqual([[{ queue: 'work', brings: 'jobs' }]]);
    await sleep(60);
    notifier.changed('work', 'both', true);
    notifier.taken('work', notifier.changes);
    await expect.poll(() => sent[1], { interval: 0 }).toEqual([{ queue: 'work', brings: 'both' }]);
    await sleep(60);
    notifier.changed('work', 'jobs', true);
    notifier.changed('mail', 'locks');
    notifier.taken('work', notifier.changes);
    await expect
      .poll(() => sent[2], { interval: 0 })
      .toEqual([
        { queue: 'work', brings: 'news' },
        { queue: 'mail', brings: 'locks' },
      ]);
    await notifier.close();
  });
});
