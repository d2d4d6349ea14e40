// Computes when the holder of a lock stops trusting it: before the store grants the lock to another session. Deadlines are milliseconds
// of the monotonic clock, cut to 32 bits so that one word of shared memory holds them. They are compared by their difference. That
// survives the wrap-around after 49 days, as long as no duration is longer than MAX_TIMER_MS.
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
 * The margin taken off a lock's duration, in ms: a twentieth, at most a second. It gives a handler time to notice and stop, and covers
 * clocks that run at slightly different rates.
 */
export function marginOf(durationMs: number): number {
  return Math.min(1000, Math.ceil(durationMs / 20));
}

/**
 * Returns the trust deadline. `sentAt` is the moment before the request was sent, never the moment its reply arrived. For durations above
 * MAX_TIMER_MS trust ends before the lock does, because a 32-bit word cannot distinguish later moments from past ones.
 */
export function trustUntil(sentAt: Moment, durationMs: number): Moment {
  return moment(sentAt + Math.min(durationMs, MAX_TIMER_MS) - marginOf(durationMs));
}
