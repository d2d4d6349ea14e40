// The one owner of the locks that this worker holds. Knows which run, tells each that it was lost exactly once, and ends trust on time
// even when nobody answers: when a session's deadline passes without a renewal, its handlers are told.
import type { HeldLock } from './held-lock.js';
import type { Session } from './session.js';
import type { Moment } from './trust.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

export interface LockTableReports {
  /** These were lost; told once for each. */
  onLost(locks: HeldLock[], reason: string): void;
}

/** Locks that were taken away and are not known here: mostly of runs that have just ended, so few are worth remembering. */
const MAX_FOREIGN = 1000;

export class LockTable {
  /** By token: a worker may run a job again while its first, lost run has not ended. */
  readonly #locks = new Map<string, HeldLock>();
  readonly #reports: LockTableReports;
  /** Tokens of locks that were taken away before the claim that granted them was answered. */
  readonly #foreign = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #looksAt = Number.POSITIVE_INFINITY;
  /** The timer comes in time for every lock that lives as long as this session, as long as the session's deadline is this one. */
  #covered: Session | undefined;
  #coveredUntil: Moment = 0;

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

  /** Of the locks that hang on a session and were renewed with it: not of a lost one whose handler has not ended yet. */
  renewedJobIds(session: Session): string[] {
    const ids: string[] = [];
    for (const lock of this.#locks.values()) if (lock.session === session && !lock.timed && lock.trusted) ids.push(lock.jobId);
    return ids;
  }

  get(token: string): HeldLock | undefined {
    return this.#locks.get(token);
  }

  find(jobId: string): HeldLock[] {
    return Array.from(this.#locks.values()).filter((lock) => lock.jobId === jobId);
  }

  /** False: it was lost on its way here (the process was frozen, an operator took it away), so nothing may be run under it. */
  track(lock: HeldLock): boolean {
    if (this.#foreign.delete(lock.token) || !lock.trusted) return false;
    this.#locks.set(lock.token, lock);
    this.#cover(lock);
    return true;
  }

  /** An extension is on its way that may leave less than there was. */
  shorten(token: string, sentAt: Moment, durationMs: number): void {
    const lock = this.#locks.get(token);
    if (lock === undefined) return;
    lock.shorten(sentAt, durationMs);
    this.#lookIn(lock.trustedForMs(), lock);
  }

  extend(token: string, sentAt: Moment, durationMs: number): void {
    const lock = this.#locks.get(token);
    if (lock === undefined) return;
    lock.extend(sentAt, durationMs);
    this.#lookIn(lock.trustedForMs(), lock);
  }

  untrack(lock: HeldLock): void {
    lock.release();
    this.#locks.delete(lock.token);
  }

  loseTokens(tokens: string[], reason: string): void {
    const known: HeldLock[] = [];
    for (const token of tokens) {
      const lock = this.#locks.get(token);
      if (lock !== undefined) known.push(lock);
      else this.#foreign.add(token);
    }
    for (const token of this.#foreign) if (this.#foreign.size > MAX_FOREIGN) this.#foreign.delete(token);
    this.#lose(known, reason);
  }

  /** All that hang on the session. One that is timed or pinned lives on. */
  loseSession(session: Session, reason: string): void {
    this.#lose(
      Array.from(this.#locks.values()).filter((lock) => lock.session === session && !lock.trusted),
      reason,
    );
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#looksAt = Number.POSITIVE_INFINITY;
    this.#covered = undefined;
  }

  #lose(candidates: HeldLock[], reason: string): void {
    // A handler that has ended has nothing left to stop; the store will say whether its result still counts.
    const lost = candidates.filter((lock) => !lock.finishing && lock.lose(reason));
    if (lost.length > 0) this.#reports.onLost(lost, reason);
  }

  /** Deadlines move in shared memory without a message, so the timer looks again instead of being told. */
  #checkTrust(): void {
    this.stop();
    const over: HeldLock[] = [];
    for (const lock of this.#locks.values()) {
      const left = lock.trustedForMs();
      if (left <= 0) over.push(lock);
      else this.#lookIn(left, lock);
    }
    this.#lose(over, 'it was not renewed in time');
  }

  /** Of the many jobs that are claimed under one deadline, the first alone asks for the time: two readings of the clock less for each. */
  #cover(lock: HeldLock): void {
    const { session } = lock;
    const { trustedUntil } = session;
    if (!lock.timed && session === this.#covered && trustedUntil === this.#coveredUntil) return;
    this.#lookIn(lock.trustedForMs(), lock);
    if (lock.timed) return;
    this.#covered = session;
    this.#coveredUntil = trustedUntil;
  }

  #lookIn(ms: number, { session: { clock } }: HeldLock): void {
    const at = clock.monotonic() + ms;
    if (at >= this.#looksAt) return;
    clearTimeout(this.#timer);
    this.#looksAt = at;
    this.#timer = setTimeout(() => this.#checkTrust(), Math.max(0, ms) + 1).unref();
  }
}
