// Getting SQLite's write lock: fair to other processes, and without blocking the event loop for long.
//
// SQLite has no queue for its lock: whoever asks while it is free gets it. Its own busy handler sleeps up to 100 ms between two tries
// while a hot process asks again after microseconds. So a waiter asks often, in naps of 0.1 ms that block the loop no longer than a
// commit does, and whoever sees that others write too leaves a gap after its commit that is longer than a nap. The holder of the lock
// then changes with nearly every commit.
// Measured with two processes that settle and claim 100 jobs a call while a third one renews a session (share of the weaker process,
// slowest 1 % of its calls, slowest renewal, jobs per second of both):
//   SQLite's busy handler             17–47 %   10–58 ms   235–1,730 ms   38,000–64,000
//   retry by timers of 1–2 ms         43–44 %   34–72 ms     52–75 ms     44,000–59,000
//   naps of 0.1 ms, then timers       47–49 %   16–30 ms     19–62 ms     35,000–55,000
//   naps, and a gap after a commit    49–50 %    8–10 ms     20–25 ms     47,000–57,000
import type { Database, Statement } from './driver.js';
import { blameOf } from './errors.js';

const NAP_MS = 0.1;
const GAP_MS = 0.25;
/**
 * For so long after somebody else's commit the file counts as shared. On a machine with much else to do, the other one may not run for
 * many milliseconds: with 20 ms here it was then taken for gone, and found no gap when it came back (the weaker of two got 26–50 % of
 * the jobs beside twenty busy processes, and 42–50 % with 200 ms).
 */
const SHARED_FOR_MS = 200;
/** How long one try may nap, by how long the batch has waited already: a lock that is held for long is none of the hot kind. */
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

  /** Since the transaction before this one, somebody else has written. */
  othersWrote = true;

  /** Begins a write transaction; false when somebody else still has the lock. */
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

  /** Changes when others have written. Inside a transaction asking takes 1 µs; outside, with a read lock of its own, 8 µs. */
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
