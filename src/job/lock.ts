// The two names of an acquisition. Every store makes them the same way, in the step that grants the lock.

/** Unique: a session's id is never used twice, and a fence never within a queue. */
export function tokenOf(session: string, fence: number): string {
  return `${session}:${fence}`;
}

/**
 * Grows with every acquisition of a queue, also when a failover or a restored backup lost the last ones: no earlier
 * fence can lie above the clock, as long as a queue claims less than a million jobs a second.
 */
export function nextFence(last: number, storeNowMs: number): number {
  return Math.max(last + 1, Math.floor(storeNowMs * 1000));
}
