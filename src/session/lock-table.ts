// All locks that this worker or lock client holds. The table reports each lost lock exactly once. It ends trust on time even when the
// store does not reply: when a trust deadline passes without a renewal, the handlers under it are aborted.
import type { HeldLock } from './held-lock.js';
import { LinkedList } from '../runtime/linked-list.js';
import type { Notice } from '../store/contract/index.js';
import type { Session } from './session.js';
import type { Moment } from './trust.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

export interface LockTableReports {
  /** These locks were lost; each lock is reported once. */
  onLost(locks: HeldLock[], reason: string): void;
}

/** Limit for remembered notices of tokens that are not in the table. Most belong to runs that have just ended, so few are worth keeping. */
const MAX_FOREIGN = 1000;

export class LockTable {
  /** In the order of the claims. Not a Map: V8 builds a new table after every few deletions, and old tables keep finished jobs in memory. */
  readonly #locks = new LinkedList<HeldLock>();
  /** Made when a token is looked up for the first time. By token, because a worker may run a job again before its first, lost run ends. */
  #byToken: Map<string, HeldLock> | undefined;
  readonly #reports: LockTableReports;
  /** Notices that arrived before the reply to the claim that granted their tokens. */
  readonly #foreign = new Map<string, Notice>();
  #timer: NodeJS.Timeout | undefined;
  #looksAt = Number.POSITIVE_INFINITY;
  /** The timer already covers every lock bound to this session, as long as the session's deadline is `#coveredUntil`. */
  #covered: Session | undefined;
  #coveredUntil: Moment = 0;

  constructor(reports: LockTableReports) {
    this.#reports = reports;
  }

  get size(): number {
    return this.#locks.size;
  }

  /** Returns a copy: a caller may untrack the locks one after the other. */
  locks(): HeldLock[] {
    return Array.from(this.#locks.forward());
  }

  jobIds(): string[] {
    return Array.from(this.#locks.forward(), ({ jobId }) => jobId);
  }

  /** Job ids of the locks that were renewed with the session. A lost lock whose handler has not ended yet is left out. */
  renewedJobIds(session: Session): string[] {
    const ids: string[] = [];
    for (const lock of this.#locks.forward()) if (lock.session === session && !lock.timed && lock.trusted) ids.push(lock.jobId);
    return ids;
  }

  get(token: string): HeldLock | undefined {
    this.#byToken ??= new Map(Array.from(this.#locks.forward(), (lock) => [lock.token, lock]));
    return this.#byToken.get(token);
  }

  find(jobId: string): HeldLock[] {
    return this.locks().filter((lock) => lock.jobId === jobId);
  }

  /** Returns false if the lock was lost before it got here (frozen process, operator). The caller must not run anything under that lock. */
  track(lock: HeldLock): boolean {
    const notice = this.#foreign.size === 0 ? undefined : this.#foreign.get(lock.token);
    if (notice !== undefined) this.#foreign.delete(lock.token);
    if (notice?.kind === 'revoked' || !lock.trusted) return false;
    if (notice !== undefined) lock.doom(notice.reason);
    this.#locks.pushBack(lock);
    this.#byToken?.set(lock.token, lock);
    this.#cover(lock);
    return true;
  }

  /** Called when an extension is sent that may end sooner than the lock does now. */
  shorten(token: string, sentAt: Moment, durationMs: number): void {
    const lock = this.get(token);
    if (lock === undefined) return;
    lock.shorten(sentAt, durationMs);
    this.#lookIn(lock.trustedForMs(), lock);
  }

  extend(token: string, sentAt: Moment, durationMs: number): void {
    const lock = this.get(token);
    if (lock === undefined) return;
    lock.extend(sentAt, durationMs);
    this.#lookIn(lock.trustedForMs(), lock);
  }

  untrack(lock: HeldLock): void {
    lock.release();
    // A processor that settles its own job has untracked the lock before.
    if (this.#locks.has(lock)) this.#locks.remove(lock);
    this.#byToken?.delete(lock.token);
  }

  /** The store has taken locks away, or cancelled their jobs. */
  notice(notices: Notice[]): void {
    for (const notice of notices) {
      const lock = this.get(notice.token);
      if (lock === undefined) this.#foreign.set(notice.token, notice);
      else if (notice.kind === 'revoked') this.#lose([lock], notice.reason);
      else lock.doom(notice.reason);
    }
    for (const token of this.#foreign.keys()) if (this.#foreign.size > MAX_FOREIGN) this.#foreign.delete(token);
  }

  /** Loses all locks bound to the session. A timed lock, and a lock with a running pin, stays. */
  loseSession(session: Session, reason: string): void {
    this.#lose(
      this.locks().filter((lock) => lock.session === session && !lock.trusted),
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
    // A handler that has ended has nothing left to stop; the store decides whether its result still counts.
    const lost = candidates.filter((lock) => !lock.finishing && lock.lose(reason));
    if (lost.length > 0) this.#reports.onLost(lost, reason);
  }

  /** The renewer moves deadlines in shared memory and sends no message, so the timer reads them again when it fires. */
  #checkTrust(): void {
    this.stop();
    const over: HeldLock[] = [];
    for (const lock of this.#locks.forward()) {
      const left = lock.trustedForMs();
      if (left <= 0) over.push(lock);
      else this.#lookIn(left, lock);
    }
    this.#lose(over, 'it was not renewed in time');
  }

  /** Jobs claimed under the same deadline share one timer. Only the first reads the clock, which saves two reads for each of the others. */
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
