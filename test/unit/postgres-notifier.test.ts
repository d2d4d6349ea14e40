// How the PostgreSQL store tells other processes of changes: what is pending when it closes.
import { expect, test } from 'vitest';
import { Notifier } from '../../src/store/postgres/notify.js';

const timers = (): number => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;

test('while it waits for its last notification, closing keeps the process alive, and not for longer', async () => {
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

test('changes that come one upon the other are told together, the more so the longer they come', async () => {
  let sent = 0;
  const notifier = new Notifier(async () => (sent += 1));
  const until = performance.now() + 100;
  while (performance.now() < until) {
    notifier.changed('work', 'jobs');
    await new Promise((resolve) => setImmediate(resolve));
  }
  // After 1, 2, 4, 8 and then 10 ms each.
  expect(sent).toBeLessThanOrEqual(14);
  expect(sent).toBeGreaterThan(1);
  await notifier.close();
});
