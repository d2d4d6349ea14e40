// Counts how many claims a queue or a group still allows: a block set by a user, and the window in which claims count.
import type { RateLimit } from '../../../job/rate.js';
import type { Moment } from './clock.js';

export interface ClaimWindow {
  /** The end of a block. */
  limitedUntil: number;
  windowEnds: number;
  windowUsed: number;
}

/** Returns how many claims are possible now. Without a limit, only a block counts. */
export function roomOf(window: ClaimWindow, limit: RateLimit | undefined, now: number): number {
  if (window.limitedUntil > now) return 0;
  if (limit === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(0, limit.max - (window.windowEnds > now ? window.windowUsed : 0));
}

/** Counts claims. The window opens with the first claim that it counts, not when `roomOf` is first called. */
export function useRoom(window: ClaimWindow, claims: number, limit: RateLimit | undefined, transaction: Moment): void {
  if (claims === 0) return;
  if (limit !== undefined && window.windowEnds <= transaction.now) {
    window.windowEnds = transaction.after(limit.durationMs);
    window.windowUsed = 0;
  }
  if (window.windowEnds > transaction.now) window.windowUsed += claims;
}

/** Returns the milliseconds until claims under this limit are possible again; 0 if they are possible now. */
export function limitedMs(window: ClaimWindow, limit: RateLimit | undefined, now: number): number {
  const isFull = window.windowEnds > now && limit !== undefined && window.windowUsed >= limit.max;
  return Math.max(0, window.limitedUntil - now, isFull ? window.windowEnds - now : 0);
}
