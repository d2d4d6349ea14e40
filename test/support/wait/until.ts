// Waiting for what has no event of its own: looks until it is so, and says what it waited for when it never comes.
import { setTimeout as sleep } from 'node:timers/promises';
import { paced } from './pace.js';
import { stopwatch } from './stopwatch.js';

/** Looks follow one another quickly at first. What takes longer is looked at less often: each look costs the processor. */
const LOOK_MS = { first: 2, last: 20 };
const PATIENCE_MS = 20_000;

type Truthy<T> = Exclude<T, undefined | null | false | 0 | ''>;

/** Returns the first truthy value that `look` returns. */
export async function until<T>(what: string, look: () => T | Promise<T>, patienceMs = PATIENCE_MS): Promise<Truthy<T>> {
  const deadline = performance.now() + paced(patienceMs);
  for (let pauseMs = LOOK_MS.first; ; pauseMs = Math.min(LOOK_MS.last, pauseMs * 1.5)) {
    const seen = await look();
    if (seen) return seen as Truthy<T>;
    if (performance.now() > deadline) throw new Error(`Waited ${paced(patienceMs)} ms in vain: ${what}`);
    await sleep(pauseMs);
  }
}

/** For showing that something does not happen, and for handlers that last: the only sleeps of these tests. */
export { sleep };

/** 'pending' when the promise has not settled within `ms`. */
export async function outcomeOf(promise: Promise<unknown>, ms: number): Promise<'pending' | 'resolved' | 'rejected'> {
  const settled = promise.then(
    () => 'resolved' as const,
    () => 'rejected' as const,
  );
  const over = new AbortController();
  const pending = passed(ms, over.signal).then(() => 'pending' as const);
  const outcome = await Promise.race([settled, pending]);
  over.abort();
  return outcome;
}

/** Resolves after this time without pauses of the machine, or when the signal is aborted. */
async function passed(ms: number, signal: AbortSignal): Promise<void> {
  const took = stopwatch();
  for (let left = ms; left > 0 && !signal.aborted; left = ms - took()) {
    await sleep(left, undefined, { signal }).catch(() => undefined);
  }
}
