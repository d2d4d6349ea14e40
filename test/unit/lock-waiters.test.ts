// The waiters for named locks, without a store.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LockWaiters } from '../../src/lock/lock-waiters.js';
import type { LetGoStatus, NamedLockRef, Store } from '../../src/store/contract/index.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function lineTo(letGo: (refs: NamedLockRef[]) => LetGoStatus[]): LockWaiters {
  const store = { capabilities: {}, letGo: async (_: string, refs: NamedLockRef[]) => letGo(refs) } as unknown as Store;
  const nothing = (): void => undefined;
  return new LockWaiters({ queue: 'q', ready: async () => store, isHeld: () => false, sessionGone: nothing, onError: nothing });
}

it('releases named locks a second time later, because a failover may have lost the first release', async () => {
  const calls: NamedLockRef[][] = [];
  const line = lineTo((refs) => {
    calls.push(refs);
    return refs.map(() => 'done');
  });
  const answers = [line.giveBack('x', 'a'), line.giveBack('y', 'b')];
  await vi.advanceTimersByTimeAsync(10);
  expect(await Promise.all(answers)).toEqual([true, true]);
  const refs = [
    { name: 'x', token: 'a' },
    { name: 'y', token: 'b' },
  ];
  expect(calls).toEqual([refs]);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(calls).toEqual([refs, refs]);
  line.end();
});

it('does not wait for the second release of named locks on close', async () => {
  let calls = 0;
  const line = lineTo((refs) => {
    calls += 1;
    return refs.map(() => 'done');
  });
  void line.giveBack('x', 'a');
  await vi.advanceTimersByTimeAsync(10);
  await line.idle();
  line.end();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(calls).toBe(1);
});
