// One lock of this process. `job.lock` reads it, and its signal aborts the handler when the lock is lost.
// A lock ends with its session; a timed lock has its own end; a pinned lock (extendLock) may outlive its session.
import { HoldfastError } from '../errors.js';
import type { JobLock } from '../job/lock.js';
import type { Outcome } from '../job/outcome.js';
import type { ClaimedJob } from '../job/record.js';
import type { Linked } from '../runtime/linked-list.js';
import type { Session } from './session.js';
import { between, now, trustUntil, type Moment } from './trust.js';

export interface HeldLockOptions {
  session: Session;
  job: Pick<ClaimedJob, 'id' | 'token' | 'fence'>;
  /** A named lock: `job.id` is its name. */
  named?: boolean;
  /** The job was claimed ahead of a free slot: its run begins with `begin`, or never. */
  isAhead?: boolean;
  /** Set for a timed lock: its duration, and the moment before the claim was sent. */
  timed?: { durationMs: number; sentAt: Moment };
  /** Set inside a sandbox: the words of the lock's own end, which the worker writes. */
  seen?: { ownEnd: Int32Array; timed: boolean };
  onGrown(block: SharedArrayBuffer): void;
}

export class HeldLock implements JobLock, Linked<HeldLock> {
  /** Its neighbours in the lock table. */
  before: HeldLock | undefined = undefined;
  after: HeldLock | undefined = undefined;
  /** The job's id; for a named lock, the name. */
  readonly jobId: string;
  readonly #named: boolean;
  readonly token: string;
  readonly fence: number;
  readonly session: Session;
  readonly timed: boolean;
  readonly #slot: number;
  #isAhead: boolean;
  /** Created on first use: a signal costs more than the rest of the lock, and most handlers never read theirs. */
  #controller: AbortController | undefined;
  #abortReason: unknown;
  #aborted = false;
  #withdrawn = false;
  /** The end of a timed lock, or of a pin. */
  #ownEnd: Moment | undefined;
  /** The same for the other side of a sandbox: whether there is such an end, and the end. */
  #ownEndWords: Int32Array | undefined;
  #released = false;
  #lost = false;
  /** A check has found that the trust deadline has passed, or that the renewer has marked the lock as lost. Never reset. */
  #doubted = false;
  /** `held` has returned false once. Never reset. */
  #unsure = false;
  /** The handler has ended, or has moved the job itself; only the store's reply is missing. */
  finishing = false;
  /** The handler has moved the job itself: the store may have let another owner in, whether or not its reply has come. */
  moved = false;
  /** Why the job was cancelled in the store. */
  doomed: string | undefined = undefined;
  /** The handler has completed the job in a transaction of the user, which may have rolled back. */
  completing: { outcome: Outcome; value: unknown } | undefined = undefined;
  /** The store has acknowledged a move that the handler made itself. */
  settled = false;

  constructor({ session, job, named = false, isAhead = false, timed, seen, onGrown }: HeldLockOptions) {
    this.jobId = job.id;
    this.#named = named;
    this.token = job.token;
    this.fence = job.fence;
    this.session = session;
    this.timed = timed !== undefined || seen?.timed === true;
    this.#slot = session.takeSlot(job.fence, onGrown, isAhead);
    this.#isAhead = isAhead;
    this.#ownEndWords = seen?.ownEnd;
    if (timed !== undefined) this.#setOwnEnd(trustUntil(timed.sentAt, timed.durationMs));
  }

  get order(): number {
    return this.fence;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  /** We asked the handler to stop, because the lock is lost or the worker shuts down. An error after that is not the job's fault. */
  get withdrawn(): boolean {
    return this.#withdrawn;
  }

  /** The reason that the caller passed to `cancel`; undefined after a withdrawal. */
  get cancelReason(): unknown {
    return this.#aborted && !this.#withdrawn ? this.#abortReason : undefined;
  }

  get held(): boolean {
    // Once `held` has returned false, it stays false: a late reply of the store must not make the handler trust the lock again.
    this.#unsure ||= this.moved || !this.isSure;
    return !this.#unsure;
  }

  /** True while the lock is certainly ours. It may turn true again after it was false. */
  get isSure(): boolean {
    return this.trusted && (this.timed || this.#ownMs() > 0 || this.session.isConfirmed);
  }

  /**
   * True while the lock is ours, unless a server that has lost sight of this process has let another session in. The handler goes on
   * in that case, and its result is sent to the store.
   */
  get trusted(): boolean {
    if (this.#released || this.#lost) return false;
    this.#doubted ||= !this.session.holds(this.#slot, this.fence) || this.trustedForMs() <= 0;
    return !this.#doubted;
  }

  /** Begins the run of the job. Returns false if the lock cannot be trusted, or if the renewer has given the job back unbegun. */
  begin(): boolean {
    if (!this.trusted) return false;
    if (this.#isAhead && !this.session.memory.begin(this.#slot, this.fence)) {
      this.#doubted = true;
      return false;
    }
    this.#isAhead = false;
    return true;
  }

  get expiresAt(): number {
    return this.session.clock.wall() + this.trustedForMs();
  }

  get remainingMs(): number {
    return this.held ? Math.max(0, this.sureForMs()) : 0;
  }

  assert(): void {
    if (this.held) return;
    const why = this.#lost
      ? 'it was lost'
      : this.#released
        ? 'it was given up'
        : 'the store did not confirm it in time, so another owner may have it';
    const message = `The lock of ${this.#what} is not held: ${why}. Stop, and write nothing more.`;
    throw new HoldfastError('LOCK_LOST', message, { ...this.#facts, ...(this.#lost ? { cause: this.#abortReason } : {}) });
  }

  trustedForMs(): number {
    if (this.#doubted) return 0;
    const own = this.#ownMs();
    return this.timed ? own : Math.max(own, this.session.trustedForMs());
  }

  /** Returns how many ms `held` stays true without word from the store. */
  sureForMs(): number {
    if (!this.isSure) return 0;
    const own = this.#ownMs();
    return this.timed ? own : Math.max(own, Math.min(this.session.trustedForMs(), this.session.confirmedForMs()));
  }

  /** Lets a thread read the lock: it gets what is returned, and `ownEnd` is kept up to date until the next call. */
  share(ownEnd: Int32Array | undefined): { words: SharedArrayBuffer; block: SharedArrayBuffer; slot: number } {
    this.#ownEndWords = ownEnd;
    if (ownEnd !== undefined) {
      Atomics.store(ownEnd, 0, 0);
      if (this.#ownEnd !== undefined) this.#setOwnEnd(this.#ownEnd);
    }
    return this.session.memory.placeOf(this.#slot);
  }

  #setOwnEnd(end: Moment): void {
    this.#ownEnd = end;
    if (this.#ownEndWords === undefined) return;
    Atomics.store(this.#ownEndWords, 1, end);
    Atomics.store(this.#ownEndWords, 0, 1);
  }

  #ownMs(): number {
    const words = this.#ownEndWords;
    if (words !== undefined) this.#ownEnd = Atomics.load(words, 0) === 0 ? undefined : Atomics.load(words, 1);
    return this.#ownEnd === undefined ? 0 : between(now(this.session.clock), this.#ownEnd);
  }

  /**
   * Called before an extension to `durationMs` is sent. The store may apply the extension long before its reply arrives, and the
   * extension may end sooner than the lock did before. So trust ends at the earlier of the two.
   */
  shorten(sentAt: Moment, durationMs: number): void {
    const end = trustUntil(sentAt, durationMs);
    if (this.#ownEnd !== undefined && between(end, this.#ownEnd) > 0) this.#setOwnEnd(end);
  }

  /**
   * Called after the store has extended the lock to `durationMs`, counted from `sentAt` or later. The newest extension counts, even if
   * it ends sooner: the store may have forgotten the one before.
   */
  extend(sentAt: Moment, durationMs: number): void {
    this.#setOwnEnd(trustUntil(sentAt, durationMs));
  }

  /** Marks the lock as lost and aborts its signal. Returns true the first time only. */
  lose(reason: string): boolean {
    if (this.#lost || this.#released) return false;
    this.#lost = true;
    this.session.memory.loseSlot(this.#slot, this.fence);
    this.withdraw(new HoldfastError('LOCK_LOST', `lock lost: ${this.#what}: ${reason}`, this.#facts));
    return true;
  }

  get #what(): string {
    return this.#named ? `"${this.jobId}"` : `job ${this.jobId}`;
  }

  get #facts(): { queue: string; jobId?: string } {
    return { queue: this.session.queue, ...(this.#named ? {} : { jobId: this.jobId }) };
  }

  /** Aborts the run for a reason that lies outside the job. A job that was cancelled before stays cancelled. */
  withdraw(reason: HoldfastError): void {
    this.#withdrawn ||= !this.#aborted;
    this.cancel(reason);
  }

  /** The job was cancelled in the store, so it never runs again. The lock stays held until the run ends. */
  doom(reason: string): void {
    // A handler that has ended has nothing left to stop. One that moves its job itself goes on if the store refuses the move.
    if (this.settled || (this.finishing && !this.moved)) return;
    this.doomed = reason;
    this.cancel(new HoldfastError('CANCELLED', reason, { queue: this.session.queue, jobId: this.jobId }));
  }

  /** Asks the handler to stop. The lock stays held. */
  cancel(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#abortReason = reason;
    this.#controller?.abort(reason);
  }

  /** The store has acknowledged the end of the run. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.session.returnSlot(this.#slot);
  }
}
