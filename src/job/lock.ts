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

/** What the holder of a lock may know about it at any moment, also inside a synchronous loop. Reading it does no I/O. */
export interface JobLock {
  /**
   * Surely still ours: nobody else can have been let in yet. It is false as soon as that is not sure, also while the store does not answer,
   * when the lock may well be kept in the end: a handler that goes on then is not aborted, and its result is delivered. Once false, it never
   * turns true again: a handler that was told must not be told otherwise.
   */
  readonly held: boolean;
  readonly token: string;
  /** Hand this to every system that the handler writes to; it must refuse a smaller one than it has seen. */
  readonly fence: number;
  /** When trust ends unless the lock is renewed before, in ms since the epoch on this host's clock. */
  readonly expiresAt: number;
  /** Aborted when the lock is lost, with the reason. */
  readonly signal: AbortSignal;
}

const NOT_HELD = AbortSignal.abort(new Error('This handle holds no lock.'));

/** The lock of a job that this process does not hold. */
export const NO_LOCK: JobLock = lockNotHeld('', 0);

/** A lock of which nothing is left but its names. */
export function lockNotHeld(token: string, fence: number): JobLock {
  return { held: false, token, fence, expiresAt: 0, signal: NOT_HELD };
}
