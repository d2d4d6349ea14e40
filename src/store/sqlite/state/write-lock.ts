// Gets SQLite's write lock: fair to other processes, and without blocking the event loop for long.
//
// SQLite has no queue for its lock: a process that asks while the lock is free gets it. SQLite's own busy handler sleeps up to 100
// ms between two tries, while a hot process asks again after microseconds. So a waiting process asks often, in naps of 0.1 ms that
// block the event loop no longer than a commit does. A process that sees other writers leaves a gap after its commit that is longer
// than a nap. The holder of the lock then changes with nearly every commit.
// Measured with two processes that settle and claim 100 jobs a call while a third one renews a session (share of the weaker
// process, slowest 1 % of its calls, slowest renewal, jobs per second of both):
//   SQLite's busy handler             17–47 %   10–58 ms   235–1,730 ms   38,000–64,000
//   retry by timers of 1–2 ms         43–44 %   34–72 ms     52–75 ms     44,000–59,000
//   naps of 0.1 ms, then timers       47–49 %   16–30 ms     19–62 ms     35,000–55,000
//   naps, and a gap after a commit    49–50 %    8–10 ms     20–25 ms     47,000–57,000
import type { Database, Statement } from '../driver/load.js';
import { blameOf } from '../driver/errors.js';

const NAP_MS = 0.1;
const GAP_MS = 0.25;
/**
 * For this long after a commit of another connection, the file counts as shared. On a busy machine the other process may not run
 * for many milliseconds. With 20 ms it was then taken for gone, and found no gap when it came back: beside twenty busy processes
 * the weaker of two got 26–50 % of the jobs, and 42–50 % with 200 ms.
 */
const SHARED_FOR_MS = 200;
/**
 * How long one try may nap, by how long the batch has waited already. A lock that is held for longer than HOT_WAIT_MS is not held
 * by a hot process, so naps would not help.
 */
const FIRST_PATIENCE_MS = 3;
const NEXT_PATIENCE_MS = 1;
const HOT_WAIT_MS = 50;

const sleeper = new Int32Array(new SharedArrayBuffer(4));

export class WriteLock {
  readonly #begin: Statement;
  readonly #dataVersion: Statement<[number]>;
  #seenVersion = -1;
  #sharedUntil = 0;
  #releasedAt = 0;

  constructor(db: Database) {
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#dataVersion = db.prepare('PRAGMA data_version');
  }

  /** True if another connection has written since the previous transaction. */
  othersWrote = true;

  /** Begins a write transaction. Returns false if another connection still holds the lock. */
  tryBegin(waitedMs: number): boolean {
    if (waitedMs === 0) this.#leaveGap();
    if (!this.#begunSoon(waitedMs)) return false;
    this.#lookForOthers();
    return true;
  }

  #begunSoon(waitedMs: number): boolean {
    if (this.#begun()) return true;
    const patience = waitedMs === 0 ? FIRST_PATIENCE_MS : waitedMs < HOT_WAIT_MS ? NEXT_PATIENCE_MS : 0;
    const end = performance.now() + patience;
    while (performance.now() < end) {
      nap(NAP_MS);
      if (this.#begun()) return true;
    }
    return false;
  }

  released(): void {
    this.#releasedAt = performance.now();
  }

  /**
   * Returns a number that changes when another connection has written. Takes 1 µs inside a transaction; outside, with its own read
   * lock, 8 µs.
   */
  version(): number {
    return this.#dataVersion.get()?.[0] ?? 0;
  }

  #lookForOthers(): void {
    const version = this.version();
    this.othersWrote = version !== this.#seenVersion;
    this.#seenVersion = version;
    if (this.othersWrote) this.#sharedUntil = performance.now() + SHARED_FOR_MS;
  }

  #leaveGap(): void {
    const now = performance.now();
    const left = this.#releasedAt + GAP_MS - now;
    if (left > 0 && now < this.#sharedUntil) nap(left);
  }

  #begun(): boolean {
    try {
      this.#begin.run();
      return true;
    } catch (error) {
      if (blameOf(error) === 'busy') return false;
      throw error;
    }
  }
}

function nap(ms: number): void {
  Atomics.wait(sleeper, 0, 0, ms);
}
