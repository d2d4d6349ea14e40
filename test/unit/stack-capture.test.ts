// What the lock thread says of a stack that it did not take. That it takes stacks is in test/acceptance/s8-blocked.test.ts.
import { beforeEach, expect, test } from 'vitest';
import { debuggedNow } from '../../src/background/debugged.js';
import { MAX_PER_HOUR, StackCapture } from '../../src/background/stack-capture.js';
import { now } from '../../src/session/trust.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { RecentJobs } from '../../src/worker/recent-jobs.js';

let clock: ManualClock;
let capture: StackCapture;

beforeEach(() => {
  clock = new ManualClock();
  capture = new StackCapture(clock);
});

function taken(refusal?: string): string {
  capture.begin(refusal);
  return capture.end(now(clock));
}

test('says why no stack may be taken, and asks for none', () => {
  expect(taken('a debugger is attached')).toBe('(not taken: a debugger is attached)');
});

test('says that a block was over before it could be looked at', () => {
  expect(capture.end(now(clock))).toBe('(not taken: the block was over before)');
});

test('asks for a bounded number of stacks in an hour', () => {
  // The main thread cannot ask for its own stack. A try counts all the same.
  for (let n = 0; n < MAX_PER_HOUR; n += 1) expect(taken()).toMatch(/^\(not taken: .*worker.*\)$/);
  expect(taken()).toBe(`(not taken: ${MAX_PER_HOUR} stacks were taken within an hour)`);
  clock.advance(3_600_000);
  expect(taken()).toMatch(/worker/);
});

test.each([
  ['--inspect', true],
  ['--inspect=0', true],
  ['--inspect-brk=127.0.0.1:9229', true],
  ['--max-old-space-size=100 --inspect-wait', true],
  ['--inspect-publish-uid=http', false],
  ['--require ./--inspector.js', false],
])('takes NODE_OPTIONS=%s for a debugger: %s', (options, isDebugged) => {
  const before = process.env['NODE_OPTIONS'];
  process.env['NODE_OPTIONS'] = options;
  try {
    expect(debuggedNow()()).toBe(isDebugged);
  } finally {
    if (before === undefined) delete process.env['NODE_OPTIONS'];
    else process.env['NODE_OPTIONS'] = before;
  }
});

test('finds the ids of recent jobs by their fences, and forgets the oldest', () => {
  const recent = new RecentJobs();
  for (let fence = 1; fence <= 3000; fence += 1) recent.add(fence, `job-${fence}`);
  expect(recent.idsOf(new Set([1, 3000, 2500, 9999])).toSorted()).toEqual(['job-2500', 'job-3000']);
});
