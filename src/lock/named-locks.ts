// Takes named locks, waits for them, and holds them while work runs. They are bound to sessions like the locks of jobs. So a renewer
// renews them, and trust ends before the store lets another session in.
import { closedError, HoldfastError } from '../errors.js';
import { systemClock } from '../runtime/clock.js';
import { within } from '../runtime/within.js';
import type { Store } from '../store/contract/index.js';
import { HeldLock } from '../session/held-lock.js';
import { LockWaiters } from './lock-waiters.js';
import { LockTable } from '../session/lock-table.js';
import { NamedLock } from './named-lock.js';
import type { Session } from '../session/session.js';
import type { SessionOwners } from './session-owners.js';
import { LockWaiter } from './lock-waiter.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

export interface NamedLocksOptions {
  queue: string;
  owners: SessionOwners;
  ready(): Promise<Store>;
  sessionGone(session: Session): void;
  onError(error: Error): void;
}

export interface LockTerms {
  /** How long the lock survives the death of its holder, in ms. */
  durationMs: number;
  renewMs: number;
  /** How long to wait for the lock, in ms. Infinity: without a limit. 0: not at all. */
  waitMs: number;
  /** The longest time between two asks while waiting, in ms. Default 1000. */
  askMs?: number;
  signal?: AbortSignal | undefined;
  /** Another session holds the lock, or comes first. May be called more than once. */
  onTaken?(): void;
}

const ASK_MS = 1000;
/** Delay, in ms, before asking again for a lock whose grant came too late to be trusted. The session has time to be renewed. */
const ANOTHER_TRY_MS = 50;

export class NamedLocks {
  readonly #options: NamedLocksOptions;
  readonly #waiters: LockWaiters;
  readonly #table = new LockTable({ onLost: () => undefined });
  /** Functions that end each wait with an error. */
  readonly #waiting = new Set<(error: Error) => void>();
  readonly #working = new Set<Promise<unknown>>();
  #closed = false;

  constructor(options: NamedLocksOptions) {
    this.#options = options;
    this.#waiters = new LockWaiters({ ...options, isHeld: (token) => this.#table.get(token) !== undefined });
  }

  /** Returns undefined if the lock was taken for all of `waitMs`. Rejects with the signal's reason, or with the store's error. */
  async take(name: string, terms: LockTerms): Promise<NamedLock | undefined> {
    if (this.#closed) throw this.#closedError();
    terms.signal?.throwIfAborted();
    const { owner, done } = this.#options.owners.use(terms.durationMs, terms.renewMs);
    let lock: HeldLock | undefined;
    try {
      lock = await this.#wait(name, owner, terms);
    } finally {
      if (lock === undefined) done();
    }
    if (lock === undefined) return undefined;
    const held = lock;
    return new NamedLock(held, () => this.#giveBack(held).finally(done));
  }

  /** Rejects with LOCK_LOST if the lock was lost meanwhile, whatever the work returned: another session may have had the lock. */
  async hold<T>(name: string, terms: LockTerms, work: (lock: NamedLock) => Promise<T> | T): Promise<T> {
    const lock = await this.take(name, terms);
    if (lock === undefined) throw this.#timedOut(name, terms.waitMs);
    const working = this.#work(lock, work);
    this.#working.add(working);
    try {
      return await working;
    } finally {
      this.#working.delete(working);
    }
  }

  loseSession(session: Session, reason: string): void {
    this.#table.loseSession(session, reason);
  }

  /** Ends all waiting, lets the work of `hold` end, and releases the remaining locks. */
  async close(timeoutMs: number): Promise<void> {
    this.#closed = true;
    for (const end of [...this.#waiting]) end(this.#closedError());
    await Promise.allSettled(this.#working);
    for (const lock of this.#table.locks()) {
      lock.lose('its queue was closed');
      void this.#waiters.giveBack(lock.jobId, lock.token);
    }
    await within(timeoutMs, this.#waiters.idle());
    this.#waiters.end();
    this.#table.stop();
  }

  #wait(name: string, owner: ReturnType<SessionOwners['use']>['owner'], terms: LockTerms): Promise<HeldLock | undefined> {
    const { waitMs, askMs = ASK_MS, signal, onTaken } = terms;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const over = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        this.#waiting.delete(fail);
      };
      const fail = (reason: unknown): void => {
        over();
        this.#waiters.leave(waiter);
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason of a signal may be anything
        reject(reason);
      };
      const onAbort = (): void => fail(signal?.reason);
      const waiter = new LockWaiter({
        name,
        owner,
        askMs: waitMs > 0 ? askMs : 0,
        granted: (session, token, fence) => {
          const onGrown = (block: SharedArrayBuffer): void => owner.grow(session, block);
          const lock = new HeldLock({ session, job: { id: name, token, fence }, named: true, onGrown });
          if (this.#table.track(lock)) {
            over();
            resolve(lock);
            return;
          }
          lock.release();
          void this.#waiters.giveBack(name, token);
          waiter.lineUpAgain(systemClock.monotonic() + ANOTHER_TRY_MS);
          this.#waiters.join(waiter);
        },
        taken: () => {
          onTaken?.();
          if (waitMs > 0) return;
          over();
          resolve(undefined);
        },
        failed: (error) => {
          over();
          reject(error);
        },
      });
      const onTimeout = (): void => {
        // If the store did not reply, it is not known whether the lock is taken, so this is an error.
        if (waiter.failure !== undefined || !waiter.asked) return fail(this.#timedOut(name, waitMs, waiter.failure));
        over();
        this.#waiters.leave(waiter);
        resolve(undefined);
      };
      this.#waiting.add(fail);
      signal?.addEventListener('abort', onAbort, { once: true });
      if (waitMs > 0 && waitMs < Number.POSITIVE_INFINITY) timer = setTimeout(onTimeout, waitMs);
      this.#waiters.join(waiter);
    });
  }

  async #work<T>(lock: NamedLock, work: (lock: NamedLock) => Promise<T> | T): Promise<T> {
    let value: T;
    try {
      value = await work(lock);
    } catch (error) {
      await lock.release();
      throw error;
    }
    if (await lock.release()) return value;
    const message = `The lock "${lock.name}" was lost before the work under it ended. Check what the work did: another session may have held the lock meanwhile.`;
    throw new HoldfastError('LOCK_LOST', message, { queue: this.#options.queue });
  }

  /** Returns true if the lock was held until now, whatever the store replies. If it was not held, the store's reply decides. */
  async #giveBack(lock: HeldLock): Promise<boolean> {
    const { held, session } = lock;
    const left = session.trustedForMs();
    // Trust ends here: the store may grant the lock to another session before its reply arrives.
    this.#table.untrack(lock);
    if (!session.memory.alive) return held;
    const answer = this.#waiters.giveBack(lock.jobId, lock.token);
    // If the store is unreachable, the release is sent later. The caller waits no longer than the lock would have lasted.
    return (await within(Math.max(left, ANOTHER_TRY_MS), answer)) === true || held;
  }

  #timedOut(name: string, waitMs: number, cause?: Error): HoldfastError {
    const why = cause === undefined ? 'Another session holds it.' : `The store could not be asked: ${cause.message}`;
    const message = `The lock "${name}" was not got within ${waitMs} ms. ${why} Try again, or wait longer.`;
    return new HoldfastError('TIMEOUT', message, { queue: this.#options.queue, retryable: true, cause });
  }

  #closedError(): HoldfastError {
    return closedError(`Queue "${this.#options.queue}" of these locks`);
  }
}
