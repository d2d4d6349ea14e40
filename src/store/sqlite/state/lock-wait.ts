// Measures how long SQLite's lock has been taken without any progress. If many processes start at once, they get the lock in turn:
// that takes time, but no process holds the lock for too long.

/** After a longer pause between two checks, this process was not running, so it knows nothing about the time in between. */
const NOT_LOOKING_MS = 1_000;

export class LockWait {
  #progress: number | string | undefined;
  #since = 0;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /**
   * Call it after an attempt that found the lock taken. Returns since when the lock has been taken without a break. `progress` is
   * any value that changes when other connections write.
   */
  since(progress: number | string): number {
    const now = performance.now();
    if (progress !== this.#progress || now > this.#lookedAt + NOT_LOOKING_MS) this.#since = now;
    this.#progress = progress;
    this.#lookedAt = now;
    return this.#since;
  }

  /** Call it when the lock was free. */
  reset(): void {
    this.#lookedAt = Number.NEGATIVE_INFINITY;
  }
}
