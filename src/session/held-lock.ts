// One lock of this process: what `job.lock` shows, and what aborts the handler when it is lost.
// A lock hangs on its session, or, if it is timed, has an end of its own; a pin (extendLock) makes it outlive its session.
import { HoldfastError } from '../errors.js';
import type { JobLock } from '../job/lock.js';
import type { ClaimedJob } from '../job/record.js';
import type { Session } from './session.js';
import { between, now, trustUntil, type Moment } from './trust.js';

export interface HeldLockOptions {
  session: Session;
  job: Pick<ClaimedJob, 'id' | 'token' | 'fence'>;
  /** A named lock: `job.id` is its name. */
  named?: boolean;
  /** Set for timed locks: their duration and the moment before the claim was sent. */
  timed?: { durationMs: number; sentAt: Moment };
  onGrown(block: SharedArrayBuffer): void;
}

export class HeldLock implements JobLock {
  /** Of a named lock, its name. */
  readonly jobId: string;
  readonly #named: boolean;
  readonly token: string;
  readonly fence: number;
  readonly session: Session;
  readonly timed: boolean;
  readonly #slot: number;
  /** Made on first use: a signal costs more than all the rest of a lock, and most handlers never look at theirs. */
  #controller: AbortController | undefined;
  #abortReason: unknown;
  #aborted = false;
  #withdrawn = false;
  /** The end of a timed lock, or until when a pin lasts. */
  #ownEnd: Moment | undefined;
  #released = false;
  #lost = false;
  /** Somebody has found that its time is over. */
  #doubted = false;
  /** Somebody has read `held` as false. */
  #unsure = false;
  /** The handler has ended, or has moved the job itself; only the store's answer is missing. */
  finishing = false;
  /** The store has acknowledged a move that the handler made itself. */
  settled = false;

  constructor({ session, job, named = false, timed, onGrown }: HeldLockOptions) {
    this.jobId = job.id;
    this.#named = named;
    this.token = job.token;
    this.fence = job.fence;
    this.session = session;
    this.timed = timed !== undefined;
    this.#slot = session.takeSlot(job.fence, onGrown);
    if (timed !== undefined) this.#ownEnd = trustUntil(timed.sentAt, timed.durationMs);
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  /** The handler was told to stop by us, because the lock is lost or the worker shuts down: an error after that is not the job's. */
  get withdrawn(): boolean {
    return this.#withdrawn;
  }

  /** The reason that the caller of `cancel` gave. */
  get cancelReason(): unknown {
    return this.#aborted && !this.#withdrawn ? this.#abortReason : undefined;
  }

  get held(): boolean {
    // A handler that was told once must not be told otherwise by an answer that comes late.
    this.#unsure ||= !this.isSure;
    return !this.#unsure;
  }

  /** Ours at this moment, beyond doubt; it may turn true again. */
  get isSure(): boolean {
    return this.trusted && (this.timed || this.#ownMs() > 0 || this.session.isHeard);
  }

  /** Ours unless a server that does not see this process has let somebody else in: its handler goes on, and its result is delivered. */
  get trusted(): boolean {
    if (this.#released || this.#lost) return false;
    this.#doubted ||= !this.session.memory.holds(this.#slot) || this.trustedForMs() <= 0;
    return !this.#doubted;
  }

  get expiresAt(): number {
    return this.session.clock.wall() + this.trustedForMs();
  }

  trustedForMs(): number {
    if (this.#doubted) return 0;
    const own = this.#ownMs();
    return this.timed ? own : Math.max(own, this.session.trustedForMs());
  }

  #ownMs(): number {
    return this.#ownEnd === undefined ? 0 : between(now(this.session.clock), this.#ownEnd);
  }

  /** Before the store is asked to make it last `durationMs`: it may be done long before it is answered, and may be less than was left. */
  shorten(sentAt: Moment, durationMs: number): void {
    const end = trustUntil(sentAt, durationMs);
    if (this.#ownEnd !== undefined && between(end, this.#ownEnd) > 0) this.#ownEnd = end;
  }

  /**
   * After the store has agreed to make it last `durationMs` from a moment not before `sentAt`. The newest extension counts, even if
   * it ends sooner: the store may have forgotten the one before.
   */
  extend(sentAt: Moment, durationMs: number): void {
    this.#ownEnd = trustUntil(sentAt, durationMs);
  }

  /** True the first time. */
  lose(reason: string): boolean {
    if (this.#lost || this.#released) return false;
    this.#lost = true;
    this.session.memory.loseSlot(this.#slot, this.fence);
    const { jobId, session } = this;
    const what = this.#named ? `"${jobId}"` : `job ${jobId}`;
    const facts = { queue: session.queue, ...(this.#named ? {} : { jobId }) };
    this.withdraw(new HoldfastError('LOCK_LOST', `lock lost: ${what}: ${reason}`, facts));
    return true;
  }

  /** Ends the run for a reason that is not the job's. A job that was cancelled before stays cancelled. */
  withdraw(reason: HoldfastError): void {
    this.#withdrawn ||= !this.#aborted;
    this.cancel(reason);
  }

  /** Asks the handler to stop while the lock stays. */
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
