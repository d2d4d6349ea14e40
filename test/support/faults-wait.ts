// Waiting for what has no event of its own: looks until it is so, and says what it waited for when it never comes.
import { setTimeout as sleep } from 'node:timers/promises';
import { paced } from './pace.js';

const LOOK_MS = 5;
const PATIENCE_MS = 20_000;

/** Answers what `look` answered when it was first truthy. */
export async function until<T>(what: string, look: () => T | Promise<T>, patienceMs = PATIENCE_MS): Promise<NonNullable<T>> {
  const deadline = performance.now() + paced(patienceMs);
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (performance.now() > deadline) throw new Error(`Waited ${paced(patienceMs)} ms in vain: ${what}`);
    await sleep(LOOK_MS);
  }
}

/** For showing that something does not happen, and for handlers that last: the only sleeps of these tests. */
export { sleep };

/** A promise with its handles outside. */
export interface Gate<T = void> {
  readonly opened: Promise<T>;
  open(value: T): void;
  fail(error: unknown): void;
}

export function gate<T = void>(): Gate<T> {
  let open!: (value: T) => void;
  let fail!: (error: unknown) => void;
  const opened = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { opened, open, fail };
}

/** 'pending' when the promise has not settled within `ms`. */
export async function outcomeOf(promise: Promise<unknown>, ms: number): Promise<'pending' | 'resolved' | 'rejected'> {
  const settled = promise.then(
    () => 'resolved' as const,
    () => 'rejected' as const,
  );
  const over = new AbortController();
  const pending = sleep(ms, 'pending' as const, { signal: over.signal }).catch(() => 'pending' as const);
  const outcome = await Promise.race([settled, pending]);
  over.abort();
  return outcome;
}
