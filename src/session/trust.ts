// When a holder stops believing in its lock: before the store lets anyone else in. Deadlines are milliseconds of the monotonic clock
// cut to 32 bits, so that one word of shared memory holds them; they are compared by their difference, which survives the wrap-around
// after 49 days as long as no duration is longer than MAX_TIMER_MS.
import { MAX_TIMER_MS } from '../runtime/check.js';
import type { Clock } from '../runtime/clock.js';

/** A moment on the monotonic clock as a 32-bit word. */
export type Moment = number;

export function moment(ms: number): Moment {
  return ms | 0;
}

export function now(clock: Clock): Moment {
  return moment(clock.monotonic());
}

/** Milliseconds from `from` to `to`; negative when `to` is earlier. */
export function between(from: Moment, to: Moment): number {
  return (to - from) | 0;
}

/**
 * What is taken off a lock's duration: time for a handler to notice and stop, and for clocks that run at slightly different
 * rates. A twentieth, at most a second.
 */
export function marginOf(durationMs: number): number {
  return Math.min(1000, Math.ceil(durationMs / 20));
}

/**
 * `sentAt` is the moment before the request left, never the moment when its reply came. Beyond MAX_TIMER_MS trust is shorter than
 * the lock: a word cannot tell later moments from past ones.
 */
export function trustUntil(sentAt: Moment, durationMs: number): Moment {
  return moment(sentAt + Math.min(durationMs, MAX_TIMER_MS) - marginOf(durationMs));
}
