// How long a lock of SQLite's has been in the way without a change. Many processes that start at once get it in turn: that takes time, but
// none of them holds it for too long.

/** After a longer pause this process was not running, and nothing is known of the time in between. */
const NOT_LOOKING_MS = 1_000;

export class LockWait {
  #progress: number | string | undefined;
  #since = 0;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /**
   * After an attempt that found the lock taken: since when the lock has been taken without a break. `progress` is whatever changes when
   * others write.
   */
  since(progress: number | string): number {
    const now = performance.now();
    if (progress !== this.#progress || now > this.#lookedAt + NOT_LOOKING_MS) this.#since = now;
    this.#progress = progress;
    this.#lookedAt = now;
    return this.#since;
  }

  /** The lock was free. */
  reset(): void {
    this.#lookedAt = Number.NEGATIVE_INFINITY;
  }
}
