// Counts how many claims a queue still allows: a block set by a user, and the window in which limited claims count.
import type { ClaimRequest } from '../contract/index.js';
import type { QueueState } from './queue-state.js';
import type { Transaction } from './transaction.js';

type Limit = NonNullable<ClaimRequest['limit']>;

/** Returns how many claims are possible now. Without a limit of the claiming worker, only a block counts. */
export function roomOf(queue: QueueState, limit: Limit | undefined, now: number): number {
  if (queue.limitedUntil > now) return 0;
  if (limit === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(0, limit.max - (queue.windowEnds > now ? queue.windowUsed : 0));
}

/** Counts claims. The window opens with the first claim that it counts, not when `roomOf` is first called. */
export function useRoom(queue: QueueState, claims: number, limit: Limit | undefined, transaction: Transaction): void {
  if (claims === 0) return;
  if (limit !== undefined && queue.windowEnds <= transaction.now) {
    queue.windowEnds = transaction.after(limit.durationMs);
    queue.windowUsed = 0;
  }
  if (queue.windowEnds <= transaction.now) return;
  queue.windowUsed += claims;
  if (limit !== undefined) queue.windowMax = limit.max;
}

/**
 * Returns the milliseconds until claims under `max` are possible again; 0 if they are possible now. To report the state of the
 * queue, pass the limit that its workers last used (`windowMax`).
 */
export function limitedMs(queue: QueueState, now: number, max: number | undefined): number {
  const full = queue.windowEnds > now && max !== undefined && queue.windowUsed >= max;
  return Math.max(0, queue.limitedUntil - now, full ? queue.windowEnds - now : 0);
}
