// The one owner of the locks that this worker holds. Knows which run, tells each that it was lost exactly once, and ends trust on time
// even when nobody answers: when a session's deadline passes without a renewal, its handlers are told.
import type { HeldLock } from './held-lock.js';
import type { Session } from './session.js';

export interface LockTableReports {
  /** These were lost; told once for each. */
  onLost(locks: HeldLock[], reason: string): void;
}

export class LockTable {
  /** By token: a worker may run a job again while its first, lost run has not ended. */
  readonly #locks = new Map<string, HeldLock>();
  readonly #reports: LockTableReports;
  #timer: NodeJS.Timeout | undefined;

  constructor(reports: LockTableReports) {
    this.#reports = reports;
  }

  get size(): number {
    return this.#locks.size;
  }

  locks(): IterableIterator<HeldLock> {
    return this.#locks.values();
  }

  jobIds(): string[] {
    return Array.from(this.#locks.values(), ({ jobId }) => jobId);
  }

  /** Of the locks that hang on a session and can therefore be renewed with it. */
  renewedJobIds(session: Session): string[] {
    const ids: string[] = [];
    for (const lock of this.#locks.values()) if (lock.session === session && !lock.timed) ids.push(lock.jobId);
    return ids;
  }

  get(token: string): HeldLock | undefined {
    return this.#locks.get(token);
  }

  find(jobId: string): HeldLock[] {
    return Array.from(this.#locks.values()).filter((lock) => lock.jobId === jobId);
  }

  track(lock: HeldLock): void {
    this.#locks.set(lock.token, lock);
    this.#timer ??= setTimeout(() => this.#checkTrust(), lock.trustedForMs() + 1).unref();
  }

  untrack(lock: HeldLock): void {
    lock.release();
    this.#locks.delete(lock.token);
  }

  loseTokens(tokens: string[], reason: string): void {
    this.#lose(tokens.map((token) => this.#locks.get(token)).filter((lock) => lock !== undefined), reason);
  }

  /** All that hang on the session. One that is timed or pinned lives on. */
  loseSession(session: Session, reason: string): void {
    this.#lose(Array.from(this.#locks.values()).filter((lock) => lock.session === session && !lock.held), reason);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #lose(candidates: HeldLock[], reason: string): void {
    // A handler that has ended has nothing left to stop; the store will say whether its result still counts.
    const lost = candidates.filter((lock) => !lock.finishing && lock.lose(reason));
    if (lost.length > 0) this.#reports.onLost(lost, reason);
  }

  /** Deadlines move in shared memory without a message, so the timer looks again instead of being told. */
  #checkTrust(): void {
    this.#timer = undefined;
    const over: HeldLock[] = [];
    let soonest = Number.POSITIVE_INFINITY;
    for (const lock of this.#locks.values()) {
      const left = lock.trustedForMs();
      if (left <= 0) over.push(lock);
      else soonest = Math.min(soonest, left);
    }
    this.#lose(over, 'it was not renewed in time');
    if (soonest < Number.POSITIVE_INFINITY) this.#timer = setTimeout(() => this.#checkTrust(), soonest + 1).unref();
  }
}
