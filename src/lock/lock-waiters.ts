// The waiters for named locks of one lock client. All requests and releases go to the store together, one call at a time. So many waiters
// cost little more than one, and an ask for a token never overtakes its release. Without wake-ups a waiter asks every `askMs`, or sooner
// when the holder's time is over.
import { HoldfastError, isRetryable, toError } from '../errors.js';
import { systemClock } from '../runtime/clock.js';
import { retryPauseMs } from '../runtime/retry-pause.js';
import { inTime } from '../runtime/within.js';
import { batchOf } from '../store/capabilities.js';
import type { LockGrant, NamedLockRef, Store } from '../store/contract/index.js';
import type { Session } from '../session/session.js';
import { now } from '../session/trust.js';
import type { LockWaiter } from './lock-waiter.js';
import { clearTimeout, setImmediate, setTimeout } from '../runtime/timers.js';

export interface LockWaitersOptions {
  queue: string;
  ready(): Promise<Store>;
  /** True if a lock is held here under this token. */
  isHeld(token: string): boolean;
  /** The store no longer knows this session. */
  sessionGone(session: Session): void;
  onError(error: Error): void;
}

interface Return {
  ref: NamedLockRef;
  resolve(held: boolean): void;
  /** This is the second release of the same token. */
  isAgain?: boolean;
}

/** A call without a reply for this long, in ms, is repeated: an ask is idempotent under its token. */
const HANG_MS = 5000;
/**
 * Every lock is released a second time after this many ms. A store that went back in time (a replica that took over) may have lost the
 * release. It would then keep the lock for a session that lives on. A token is never used again, so the second release does no harm.
 */
const AGAIN_MS = 10_000;
/** The largest number of requests, or of releases, in one call, unless the store takes fewer. */
const MOST_AT_ONCE = 500;
const NO_ANSWER = new HoldfastError('TIMEOUT', 'The store does not answer.', { retryable: true });

export class LockWaiters {
  readonly #options: LockWaitersOptions;
  readonly #waiters = new Set<LockWaiter>();
  readonly #returns = new Set<Return>();
  #returned: NamedLockRef[] = [];
  #again: NodeJS.Timeout | undefined;
  #turning = false;
  #timer: NodeJS.Timeout | undefined;
  /** Calls in a row that failed. */
  #failures = 0;
  #pausedUntil = 0;
  #unwatch: (() => void) | undefined;
  #idle: (() => void)[] = [];
  #ended = false;

  constructor(options: LockWaitersOptions) {
    this.#options = options;
  }

  join(waiter: LockWaiter): void {
    this.#waiters.add(waiter);
    this.#schedule();
  }

  /** Gives up the request, its place in line and, if the lock was granted meanwhile, the lock. */
  leave(waiter: LockWaiter): void {
    waiter.ended = true;
    this.#remove(waiter);
    // If an ask is under way, the lock is released when its reply arrives.
    if (waiter.asked && !waiter.asking) void this.giveBack(waiter.options.name, waiter.token);
  }

  /** Resolves with the store's reply: true if the token held the lock or waited for it. Resolves with false if `end` comes first. */
  giveBack(name: string, token: string): Promise<boolean> {
    if (this.#ended) return Promise.resolve(false);
    return new Promise((resolve) => {
      this.#returns.add({ ref: { name, token }, resolve });
      this.#schedule();
    });
  }

  /** Resolves when everything was released. */
  async idle(): Promise<void> {
    if (this.#returns.size > 0 || this.#turning) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Ends all waiting. Locks that were not released yet end with their session. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#again);
    for (const waiter of [...this.#waiters]) this.#remove(waiter);
    for (const { resolve } of this.#returns) resolve(false);
    this.#returns.clear();
  }

  #remove(waiter: LockWaiter): void {
    this.#waiters.delete(waiter);
    if (this.#waiters.size > 0) return;
    this.#unwatch?.();
    this.#unwatch = undefined;
  }

  #schedule(): void {
    if (this.#turning || this.#ended) return;
    clearTimeout(this.#timer);
    if (this.#returns.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
    let due = this.#returns.size > 0 ? 0 : Number.POSITIVE_INFINITY;
    for (const { dueAt } of this.#waiters) due = Math.min(due, dueAt);
    if (due === Number.POSITIVE_INFINITY) return;
    const ms = Math.max(due, this.#pausedUntil) - systemClock.monotonic();
    // A timer takes at least a millisecond. Instead, a due request is sent with all others of this turn of the event loop.
    if (ms <= 0) {
      this.#turning = true;
      setImmediate(() => void this.#turn());
    } else this.#timer = setTimeout(() => void this.#turn(), ms);
  }

  async #turn(): Promise<void> {
    this.#turning = true;
    const time = systemClock.monotonic();
    const due = [...this.#waiters].filter((waiter) => waiter.isDue(time)).slice(0, MOST_AT_ONCE);
    try {
      const store = await withReplyTimeout(this.#options.ready());
      const most = Math.min(MOST_AT_ONCE, batchOf(store.capabilities));
      await this.#give(store, most);
      await this.#ask(store, due.slice(0, most));
      this.#failures = 0;
      this.#pausedUntil = 0;
    } catch (thrown) {
      this.#fail(due, toError(thrown));
    }
    this.#turning = false;
    if (this.#ended) for (const resolve of this.#idle.splice(0)) resolve();
    this.#schedule();
  }

  async #give(store: Store, most: number): Promise<void> {
    const returns = [...this.#returns].slice(0, most);
    if (returns.length === 0) return;
    const refs = returns.map(({ ref }) => ref);
    const answers = await withReplyTimeout(store.letGo(this.#options.queue, refs));
    returns.forEach((each, index) => {
      this.#returns.delete(each);
      each.resolve(answers[index] === 'done');
      if (each.isAgain !== true) this.#returned.push(each.ref);
    });
    if (this.#returned.length > 0 && !this.#ended) this.#again ??= setTimeout(() => this.#giveAgain(), AGAIN_MS).unref();
  }

  #giveAgain(): void {
    this.#again = undefined;
    for (const ref of this.#returned.splice(0)) this.#returns.add({ ref, resolve: () => undefined, isAgain: true });
    this.#schedule();
  }

  async #ask(store: Store, due: LockWaiter[]): Promise<void> {
    const places = await Promise.all(
      due.map(async (waiter) => ({ waiter, session: await withReplyTimeout(waiter.options.owner.session()) })),
    );
    const asking = places.filter(({ waiter }) => !waiter.ended);
    if (asking.length === 0) return;
    const time = systemClock.monotonic();
    const sentAt = now(systemClock);
    const call = store.acquire(
      this.#options.queue,
      asking.map(({ waiter, session }) => waiter.ask(session, time)),
    );
    const refs = asking.map(({ waiter }) => ({ name: waiter.options.name, token: waiter.token }));
    try {
      const grants = await withReplyTimeout(call);
      asking.forEach(({ waiter, session }, index) => {
        const grant = grants[index] as LockGrant;
        if (grant.status === 'held') session.granted(sentAt);
        this.#answer(waiter, session, grant, store);
      });
    } catch (error) {
      const giveBackUnwanted = (): void => {
        asking.forEach(({ waiter }, index) => {
          const { name, token } = refs[index] as NamedLockRef;
          // A request also ends when it is granted: the reply to a repeated ask may arrive before the reply to the first one.
          if ((waiter.ended || waiter.token !== token) && !this.#options.isHeld(token)) void this.giveBack(name, token);
        });
      };
      for (const { waiter } of asking) waiter.asking = false;
      giveBackUnwanted();
      // If the store carries out the call only after all later calls, this process would not know of the lock that it grants.
      if (error === NO_ANSWER) call.then(giveBackUnwanted, () => undefined);
      throw error;
    }
  }

  #answer(waiter: LockWaiter, session: Session, grant: LockGrant, store: Store): void {
    waiter.asking = false;
    if (waiter.ended) {
      void this.giveBack(waiter.options.name, waiter.token);
    } else if (grant.status === 'held') {
      waiter.ended = true;
      this.#remove(waiter);
      waiter.options.granted(session, waiter.token, grant.fence ?? 0);
    } else if (grant.status === 'gone') {
      this.#options.sessionGone(session);
      waiter.lineUpAgain(0);
    } else {
      waiter.failure = undefined;
      if (waiter.waits) {
        waiter.stepUp(grant, systemClock.monotonic());
        this.#watch(store, waiter);
      } else {
        waiter.ended = true;
        this.#remove(waiter);
      }
      waiter.options.taken();
    }
  }

  #watch(store: Store, waiter: LockWaiter): void {
    if (this.#unwatch !== undefined) return;
    this.#unwatch = store.watch(this.#options.queue, () => this.#wake(), 'locks');
    // A lock that came free before the watch began caused no wake-up, so ask once more.
    waiter.wake(systemClock.monotonic());
  }

  #wake(): void {
    const time = systemClock.monotonic();
    for (const waiter of this.#waiters) waiter.wake(time);
    this.#schedule();
  }

  #fail(due: LockWaiter[], error: Error): void {
    if (this.#ended) return;
    const heals = isRetryable(error);
    for (const waiter of due) {
      waiter.failure = error;
      // A waiter that asks once, or whose error will not heal with time, leaves and releases what it may have been granted.
      if (waiter.ended || (heals && waiter.waits)) continue;
      this.leave(waiter);
      waiter.options.failed(error);
    }
    // Reported once per outage, unless every waiter got the error as a rejection.
    if (this.#failures === 0 && (heals || due.length === 0)) this.#options.onError(error);
    this.#failures += 1;
    this.#pausedUntil = systemClock.monotonic() + retryPauseMs(this.#failures);
  }
}

function withReplyTimeout<T>(answer: Promise<T>): Promise<T> {
  return inTime(HANG_MS, answer, () => NO_ANSWER);
}
