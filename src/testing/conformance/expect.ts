// Assertions of the suite, in addition to node:assert.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChangeReply } from '../../store/contract/index.js';

/** Engines that store whole milliseconds round the current time down and ends up, so that nothing ends early. */
const ROUNDING_MS = 2;
/** How long a test waits in real time, for instance for a wake-up from a second connection. */
const TIMEOUT_MS = 15_000;

export function ids(records: { id: string }[]): string[] {
  return records.map(({ id }) => id);
}

/** Returns the reply to a change that changed all these ids. */
export function changedAll(...changed: string[]): ChangeReply {
  return { changed, others: [], more: false };
}

export function only<T>(list: T[]): T {
  assert.equal(list.length, 1, `there must be exactly one, and there are ${list.length}`);
  return list[0] as T;
}

/** Returns the n-th item of a list, which must exist. */
export function nth<T>(list: T[], index: number): T {
  assert(index < list.length, `there must be at least ${index + 1}, and there are ${list.length}`);
  return list[index] as T;
}

export function sorted(list: string[]): string[] {
  return [...list].sort();
}

/** Asserts that a duration lies within bounds. */
export function between(ms: number | undefined, low: number, high: number, what: string): void {
  assert(ms !== undefined && ms >= low && ms <= high + ROUNDING_MS, `${what} is ${ms}, not between ${low} and ${high}`);
}

/** Asserts that a condition becomes true within TIMEOUT_MS. */
export async function eventually(condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + TIMEOUT_MS;
  while (!condition()) {
    assert(performance.now() < end, `${what}: not within ${TIMEOUT_MS} ms`);
    await sleep(2);
  }
}

/**
 * Calls the acts in turn, `times` times, and returns for each the duration that a quarter of its calls stay below, in ms. What else the
 * machine does slows all acts alike, and a slow act is slow in its fastest calls too.
 */
export async function sideBySide(times: number, ...acts: (() => Promise<unknown>)[]): Promise<number[]> {
  const took = acts.map((): number[] => []);
  for (let n = 0; n < times; n += 1) {
    for (const [index, act] of acts.entries()) {
      const started = performance.now();
      await act();
      took[index]?.push(performance.now() - started);
    }
  }
  return took.map((each) => each.sort((a, b) => a - b)[Math.floor(times / 4)] ?? 0);
}
