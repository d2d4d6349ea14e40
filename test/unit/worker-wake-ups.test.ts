import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MemoryStore } from '../../src/store/memory/index.js';
import { WakeUps } from '../../src/worker/wake-ups.js';
import { takeTime, type Time } from '../support/wait/time.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

let time: Time;
let store: MemoryStore;
let wakeUps: WakeUps;

beforeEach(() => {
  time = takeTime();
  store = new MemoryStore({ clock: time.clock });
  wakeUps = new WakeUps(store, 'q');
});

afterEach(() => {
  wakeUps.end();
  vi.useRealTimers();
});

/** Waits for the next wake-up and notes when it came. */
function wait(ms: number): { woken: boolean } {
  const noted = { woken: false };
  void wakeUps.next(ms).then(() => {
    noted.woken = true;
  });
  return noted;
}

async function change(): Promise<void> {
  const job = { name: 'j', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
  await store.add('q', [job], { caller: `${Math.random()}`, seq: 1 });
}

test('wakes at a change, or when the time is up', async () => {
  const byChange = wait(1000);
  await time.pass(100);
  expect(byChange.woken).toBe(false);
  await change();
  await time.pass(10);
  expect(byChange.woken).toBe(true);
  const byTime = wait(1000);
  await time.pass(990);
  expect(byTime.woken).toBe(false);
  await time.pass(20);
  expect(byTime.woken).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

test('keeps a change for the next wait, and only for that one', async () => {
  await change();
  await change();
  await time.pass(10);
  const first = wait(1000);
  await time.pass(10);
  expect(first.woken).toBe(true);
  const second = wait(1000);
  await time.pass(100);
  expect(second.woken).toBe(false);
});

test('ignores changes after its end', async () => {
  wakeUps.end();
  const noted = wait(1000);
  await change();
  await time.pass(100);
  expect(noted.woken).toBe(false);
  wakeUps.wake();
  await time.pass(10);
  expect(noted.woken).toBe(true);
});
