// When the batches of a worker begin, and with which jobs. The test passes jobs by hand and fakes the timers.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import type { HeldLock } from '../../src/session/held-lock.js';
import type { Session } from '../../src/session/session.js';
import { BatchRunner } from '../../src/worker/batch-runner.js';
import { BatchSlots } from '../../src/worker/batch-slots.js';
import type { AnyWorkerEmitter } from '../../src/worker/events.js';
import { lockOn, openSession } from '../support/scenes/locks.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

const LONG_MS = 60_000;

let session: Session;
let unbegun: HeldLock[];
/** The ids of the jobs of each batch. */
let batches: string[][];

beforeEach(async () => {
  vi.useFakeTimers();
  session = await openSession(600_000);
  unbegun = [];
  batches = [];
});

afterEach(() => {
  session.memory.markLost();
  vi.useRealTimers();
});

function newRunner(size: number, minSize: number, concurrency = 1): BatchRunner {
  return new BatchRunner({
    processor: ({ jobs }) => {
      batches.push(jobs.map(({ id }) => id));
      return new Promise(() => undefined);
    },
    batch: { size, minSize, waitMs: LONG_MS },
    slots: new BatchSlots(concurrency, size),
    emitter: { emit: () => true } as unknown as AnyWorkerEmitter,
    onUnbegun: (locks) => void unbegun.push(...locks),
    rules: {},
    maxStartedAttempts: undefined,
  });
}

/** Passes jobs to the runner. */
function pass(runner: BatchRunner, count: number): HeldLock[] {
  const locks = Array.from({ length: count }, () => lockOn(session));
  for (const lock of locks) runner.run({ id: lock.jobId, attemptsStarted: 1 } as Job, lock, { ended: () => undefined });
  return locks;
}

const idsOf = (locks: HeldLock[]): string[] => locks.map(({ jobId }) => jobId);

test('a full batch begins at once, although the store has more', () => {
  const runner = newRunner(3, 2);
  const locks = pass(runner, 3);
  runner.gathered(true);
  expect(batches).toEqual([idsOf(locks)]);
});

test('a batch of minSize jobs begins once the store has no more', () => {
  const runner = newRunner(3, 2);
  const locks = pass(runner, 2);
  runner.gathered(true);
  expect(batches).toEqual([]);
  runner.gathered(false);
  expect(batches).toEqual([idsOf(locks)]);
});

test('a job whose lock is not trusted goes back when its batch begins, and the others begin', () => {
  const runner = newRunner(3, 3);
  const [first, lost, last] = pass(runner, 3) as [HeldLock, HeldLock, HeldLock];
  vi.spyOn(lost, 'trusted', 'get').mockReturnValue(false);
  runner.gathered(false);
  expect(batches).toEqual([idsOf([first, last])]);
  expect(unbegun).toEqual([lost]);
});

test('a batch of no trusted jobs takes no slot', () => {
  const runner = newRunner(2, 2);
  for (const lock of pass(runner, 2)) vi.spyOn(lock, 'trusted', 'get').mockReturnValue(false);
  runner.gathered(false);
  const locks = pass(runner, 2);
  runner.gathered(false);
  expect(batches).toEqual([idsOf(locks)]);
  expect(unbegun).toHaveLength(2);
});
