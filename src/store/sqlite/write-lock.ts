// Getting SQLite's write lock without starving anybody and without blocking the event loop for long.
import type { Database, Statement } from './driver.js';
import { blameOf } from './errors.js';

const NAP_MS = 0.1;
const PATIENCE_MS = 3;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

export class WriteLock {
  readonly #begin: Statement;

  constructor(db: Database) {
    this.#begin = db.prepare('BEGIN IMMEDIATE');
  }

  /** Begins a write transaction; false when somebody else has the lock. `waited`: this is not the first try. */
  tryBegin(waited: boolean): boolean {
    if (this.#try()) return true;
    if (waited) return false;
    const end = performance.now() + PATIENCE_MS;
    while (performance.now() < end) {
      Atomics.wait(sleeper, 0, 0, NAP_MS);
      if (this.#try()) return true;
    }
    return false;
  }

  #try(): boolean {
    try {
      this.#begin.run();
      return true;
    } catch (error) {
      if (blameOf(error) === 'busy') return false;
      throw error;
    }
  }
}
